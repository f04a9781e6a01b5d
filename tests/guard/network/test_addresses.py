from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.guard.network.addresses import Zone, unmap, with_embedded_ipv4, zone


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("8.8.8.8", Zone.PUBLIC),
        ("1.1.1.1", Zone.PUBLIC),
        ("172.15.255.255", Zone.PUBLIC),
        ("172.32.0.0", Zone.PUBLIC),
        ("100.63.255.255", Zone.PUBLIC),
        ("100.128.0.0", Zone.PUBLIC),
        ("223.255.255.255", Zone.PUBLIC),
        ("2606:4700::1111", Zone.PUBLIC),
        ("0.0.0.0", Zone.UNSPECIFIED),
        ("0.1.2.3", Zone.UNSPECIFIED),
        ("10.255.255.255", Zone.PRIVATE),
        ("100.64.0.1", Zone.SHARED),
        ("127.255.255.254", Zone.LOOPBACK),
        ("169.254.1.1", Zone.LINK_LOCAL),
        ("169.254.169.254", Zone.METADATA),
        ("169.254.170.2", Zone.METADATA),
        ("100.100.100.200", Zone.METADATA),
        ("168.63.129.16", Zone.METADATA),
        ("192.0.0.192", Zone.METADATA),
        ("172.16.0.0", Zone.PRIVATE),
        ("172.31.255.255", Zone.PRIVATE),
        ("192.0.0.1", Zone.RESERVED),
        ("192.0.2.1", Zone.RESERVED),
        ("192.88.99.1", Zone.RESERVED),
        ("192.168.255.255", Zone.PRIVATE),
        ("198.18.0.1", Zone.RESERVED),
        ("198.19.255.255", Zone.RESERVED),
        ("203.0.113.9", Zone.RESERVED),
        ("224.0.0.1", Zone.MULTICAST),
        ("240.0.0.1", Zone.RESERVED),
        ("255.255.255.255", Zone.BROADCAST),
        ("::", Zone.UNSPECIFIED),
        ("::1", Zone.LOOPBACK),
        ("::2", Zone.TRANSLATED),
        ("fc00::1", Zone.PRIVATE),
        ("fd00:ec2::254", Zone.METADATA),
        ("fe80::1", Zone.LINK_LOCAL),
        ("fe80::1%eth0", Zone.LINK_LOCAL),
        ("2606:4700::1111%eth0", Zone.LINK_LOCAL),
        ("fec0::1", Zone.PRIVATE),
        ("ff02::1", Zone.MULTICAST),
        ("2001:db8::1", Zone.RESERVED),
        ("3fff::1", Zone.RESERVED),
        ("2001:2::1", Zone.RESERVED),
        ("100::1", Zone.RESERVED),
        ("5f00::1", Zone.RESERVED),
        ("4000::1", Zone.RESERVED),
    ],
)
def test_each_kind_of_address_is_known(address: str, expected: Zone) -> None:
    assert zone(ip_address(address)) is expected


CARRIERS = {
    "mapped": lambda v4: (0xFFFF << 32) | v4,
    "NAT64": lambda v4: (0x64FF9B << 96) | v4,
    "6to4": lambda v4: (0x2002 << 112) | (v4 << 80) | 1,
    "ISATAP": lambda v4: (0x26064700 << 96) | (0x00005EFE << 32) | v4,
}


@given(st.sampled_from(sorted(CARRIERS)), st.integers(0, 2**32 - 1))
def test_an_ipv6_address_that_carries_an_ipv4_one_is_judged_by_it(carrier: str, value: int) -> None:
    assert zone(IPv6Address(CARRIERS[carrier](value))) is zone(IPv4Address(value))


@pytest.mark.parametrize("prefix", ["::%s", "::ffff:0:%s", "64:ff9b:1::%s"])
@given(value=st.integers(2, 2**32 - 1))
def test_unroutable_forms_are_never_public(prefix: str, value: int) -> None:
    assert zone(IPv6Address(prefix % IPv4Address(value))) is not Zone.PUBLIC


def test_teredo_is_never_public() -> None:
    assert zone(IPv6Address("2001:0:4136:e378:8000:63bf:3fff:fdd2")) is Zone.TRANSLATED


@given(st.integers(0, 2**32 - 1).map(IPv4Address) | st.integers(0, 2**128 - 1).map(IPv6Address))
def test_no_address_is_public_that_the_registries_call_otherwise(address: IPv4Address | IPv6Address) -> None:
    if zone(address) is Zone.PUBLIC:
        assert all(face.is_global and not face.is_multicast for face in with_embedded_ipv4(address))


def test_a_mapped_address_is_plainly_the_ipv4_one() -> None:
    assert unmap(IPv6Address("::ffff:10.0.0.1")) == IPv4Address("10.0.0.1")
    assert unmap(IPv6Address("2606:4700::1")) == IPv6Address("2606:4700::1")
    assert with_embedded_ipv4(IPv6Address("64:ff9b::10.0.0.1"))[1] == IPv4Address("10.0.0.1")
