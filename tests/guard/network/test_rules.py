from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ConfigError
from toolreeve.guard.network.addresses import Zone
from toolreeve.guard.network.rules import NetworkRule, parse_rules


def allow(line: str) -> NetworkRule:
    return parse_rules([line], key="network.allow")[0]


def test_a_name_is_meant_exactly_and_for_web_ports() -> None:
    rule = allow("API.example.com")

    assert rule.names("api.example.com")
    assert not rule.names("x.api.example.com")
    assert rule.covers(443, "GET")
    assert not rule.covers(8443, "GET")


def test_a_pattern_means_what_lies_below_it_and_opens_nothing_private() -> None:
    rule = allow("*.example.com:8443")

    assert rule.names("a.b.example.com")
    assert not rule.names("example.com")
    assert not rule.names("badexample.com")
    assert rule.covers(8443, "POST")
    assert rule.opens == frozenset()


@pytest.mark.parametrize("line", ["10.0.0.0/8:8080", "10.0.0.0/8:*", "GET,HEAD 10.0.0.0/8:8080"])
def test_a_network_holds_its_addresses_and_opens_its_zone(line: str) -> None:
    rule = allow(line)

    assert rule.holds(ip_address("10.1.2.3"))
    assert not rule.holds(ip_address("11.1.2.3"))
    assert not rule.holds(ip_address("::1"))
    assert rule.covers(8080, "GET")
    assert rule.opens == {Zone.PRIVATE}


@pytest.mark.parametrize("line", ["fd00::/8", "[fd00::/8]", "[fd00::/8]:8080", "[fd00::1]:8080"])
def test_ipv6_networks_are_read_with_and_without_brackets(line: str) -> None:
    assert allow(line).opens == {Zone.PRIVATE}


def test_a_network_that_spans_zones_opens_only_what_is_public() -> None:
    assert allow("0.0.0.0/0").opens == frozenset()
    assert allow("[::/0]").opens == frozenset()


def test_a_metadata_address_is_opened_only_by_itself() -> None:
    assert allow("169.254.0.0/16").opens == {Zone.LINK_LOCAL}
    assert allow("169.254.169.254").opens == {Zone.METADATA}


def test_an_address_is_read_in_every_spelling() -> None:
    assert allow("0x7f.1:8080").holds(ip_address("127.0.0.1"))


def test_methods_narrow_a_rule_and_a_tunnel_is_a_method_of_its_own() -> None:
    rule = allow("GET,HEAD api.example.com")

    assert rule.covers(443, "HEAD")
    assert not rule.covers(443, "POST")
    assert not rule.covers(443, "CONNECT")


def test_a_deny_without_a_port_is_about_every_port_and_reaches_into_tunnels() -> None:
    rule = parse_rules(["POST api.example.com"], key="network.deny")[0]

    assert rule.touches(9999, "POST")
    assert rule.touches(443, "CONNECT")
    assert not rule.touches(443, "GET")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "http://example.com",
        "example.com/path",
        "example.com:",
        "example.com:0",
        "example.com:99999",
        "example.com:web",
        "a b c",
        "get example.com",
        "*.10.0.0.1",
        "10.0.0.1/8",
        "10.0.0.0/40",
        "exa*mple.com",
        "**",
        "[::1",
        "user@example.com",
    ],
)
def test_an_invalid_rule_is_reported_with_its_key_and_a_fix(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        allow(line)

    assert caught.value.key == "network.allow"
    assert "write [METHODS ]HOST[:PORT]" in caught.value.fix


@given(st.text(max_size=40))
def test_any_line_is_a_rule_or_a_config_error(line: str) -> None:
    try:
        rule = allow(line)
    except ConfigError:
        return
    assert rule.text == line.strip()
