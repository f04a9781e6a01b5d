"""Address zones: the kind of network that an address belongs to.

Only `Zone.PUBLIC` is reachable without an explicit rule. An IPv6 address that embeds an IPv4 one is judged by that one.
Outside 2000::/3 nothing is public: an address of an unknown kind is refused.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address, ip_network

from toolreeve.core.urls import Address


class Zone(StrEnum):
    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    SHARED = "shared (carrier-grade NAT)"
    LINK_LOCAL = "link-local"
    METADATA = "cloud metadata"
    MULTICAST = "multicast"
    BROADCAST = "broadcast"
    UNSPECIFIED = "unspecified (this host)"
    RESERVED = "reserved"
    TRANSLATED = "an embedded IPv4 address"


OPENED_BY_NAME = frozenset({Zone.LOOPBACK, Zone.PRIVATE, Zone.SHARED})

_IPV4 = {
    "0.0.0.0/8": Zone.UNSPECIFIED,
    "10.0.0.0/8": Zone.PRIVATE,
    "100.64.0.0/10": Zone.SHARED,
    "127.0.0.0/8": Zone.LOOPBACK,
    "169.254.0.0/16": Zone.LINK_LOCAL,
    "172.16.0.0/12": Zone.PRIVATE,
    "192.0.0.0/24": Zone.RESERVED,
    "192.0.2.0/24": Zone.RESERVED,
    "192.88.99.0/24": Zone.RESERVED,
    "192.168.0.0/16": Zone.PRIVATE,
    "198.18.0.0/15": Zone.RESERVED,
    "198.51.100.0/24": Zone.RESERVED,
    "203.0.113.0/24": Zone.RESERVED,
    "224.0.0.0/4": Zone.MULTICAST,
    "240.0.0.0/4": Zone.RESERVED,
}
_IPV6 = {
    "::/128": Zone.UNSPECIFIED,
    "::1/128": Zone.LOOPBACK,
    "::ffff:0:0:0/96": Zone.TRANSLATED,
    "64:ff9b:1::/48": Zone.TRANSLATED,
    "2000::/3": Zone.PUBLIC,
    "fc00::/7": Zone.PRIVATE,
    "fe80::/10": Zone.LINK_LOCAL,
    "fec0::/10": Zone.PRIVATE,
    "ff00::/8": Zone.MULTICAST,
}
_IPV6_RESERVED = {
    "2001::/23": Zone.RESERVED,
    "2001:db8::/32": Zone.RESERVED,
    "3fff::/20": Zone.RESERVED,
}
# Addresses where clouds hand out credentials; some of them are in networks that are public otherwise.
_METADATA = frozenset(
    int(IPv4Address(text))
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    )
)
_METADATA_V6 = frozenset(int(IPv6Address(text)) for text in ("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"))
_BROADCAST = 0xFFFFFFFF


class _Ranges:
    """Disjoint networks, looked up by bisection."""

    __slots__ = ("_ends", "_starts", "_zones")

    def __init__(self, networks: Iterable[tuple[str, Zone]]) -> None:
        rows = sorted((ip_network(text), zone) for text, zone in networks)
        self._starts = [int(network[0]) for network, _ in rows]
        self._ends = [int(network[-1]) for network, _ in rows]
        self._zones = [zone for _, zone in rows]

    def find(self, value: int) -> Zone | None:
        index = bisect_right(self._starts, value) - 1
        return self._zones[index] if index >= 0 and value <= self._ends[index] else None


_RANGES_V4 = _Ranges(_IPV4.items())
_RANGES_V6 = _Ranges(_IPV6.items())
_RESERVED_V6 = _Ranges(_IPV6_RESERVED.items())

_MAPPED = 0xFFFF
_NAT64 = 0x64FF9B << 64
_SIX_TO_FOUR = 0x2002
_TEREDO = 0x20010000
_ISATAP = (0x00005EFE, 0x02005EFE)


def zone(address: Address) -> Zone:
    if isinstance(address, IPv4Address):
        return _zone_v4(int(address))
    return Zone.LINK_LOCAL if address.scope_id else _zone_v6(int(address))


def _zone_v4(value: int) -> Zone:
    if value in _METADATA:
        return Zone.METADATA
    if value == _BROADCAST:
        return Zone.BROADCAST
    return _RANGES_V4.find(value) or Zone.PUBLIC


def _zone_v6(value: int) -> Zone:
    if value in _METADATA_V6:
        return Zone.METADATA
    high = value >> 32
    if high in (_MAPPED, _NAT64):
        return _zone_v4(value & 0xFFFFFFFF)
    if high == 0 and value > 1:
        return Zone.TRANSLATED
    if value >> 112 == _SIX_TO_FOUR:
        return _zone_v4((value >> 80) & 0xFFFFFFFF)
    if value >> 96 == _TEREDO:
        return Zone.TRANSLATED
    found = _RESERVED_V6.find(value) or _RANGES_V6.find(value) or Zone.RESERVED
    if found is Zone.PUBLIC and (value >> 32) & 0xFFFFFFFF in _ISATAP:
        return _zone_v4(value & 0xFFFFFFFF)
    return found


def with_embedded_ipv4(address: Address) -> Sequence[Address]:
    """The address and the IPv4 one that it embeds, if any: a rule against either is a rule against both."""
    if isinstance(address, IPv4Address):
        return (address,)
    value = int(address)
    if value >> 32 in (_MAPPED, _NAT64):
        return address, IPv4Address(value & 0xFFFFFFFF)
    if value >> 112 == _SIX_TO_FOUR:
        return address, IPv4Address((value >> 80) & 0xFFFFFFFF)
    return (address,)


def unmap(address: Address) -> Address:
    """The IPv4 address of an IPv4-mapped one: to the kernel they are the same."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
