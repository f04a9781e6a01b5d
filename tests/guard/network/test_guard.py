import asyncio
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network import Answer, dns_server, web_server
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.urls import Address
from toolreeve.guard.network.addresses import Zone, zone
from toolreeve.guard.network.guard import MAX_CACHED, NetworkGuard, NetworkSettings, _is_own
from toolreeve.guard.network.resolver import HostsResolver, SystemResolver, parse_hosts

HOSTS = """
93.184.216.34   public.example allowed.example
2606:4700::1111 public.example
10.0.0.5        private.example intranet.corp
93.184.216.34   mixed.example
10.0.0.5        mixed.example
169.254.169.254 metadata.example
::ffff:10.0.0.5 mapped.example
64:ff9b::a00:5  translated.example
127.0.0.1       localhost
1.2.3.4         other.example
64:ff9b::102:304 other64.example
"""


def guard(*allow: str, deny: Sequence[str] = ()) -> NetworkGuard:
    given = NetworkSettings(allow=allow or ("*",), deny=tuple(deny))
    return NetworkGuard(given, HostsResolver(parse_hosts(HOSTS)))


async def decision(url: str, using: NetworkGuard, method: str = "GET") -> str:
    return str((await using.explain(url, method=method))["decision"])


@pytest.mark.parametrize(
    "url",
    ["http://public.example/", "https://public.example/x?y=z", "http://8.8.8.8/", "https://[2606:4700::1111]/"],
)
async def test_public_places_on_web_ports_need_no_rule(url: str) -> None:
    assert await decision(url, guard()) == "allow"


@pytest.mark.parametrize(
    "url",
    [
        "http://private.example/",
        "http://mixed.example/",
        "http://metadata.example/",
        "http://mapped.example/",
        "http://translated.example/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://localhost/",
        "http://intranet.corp/",
        "http://metadata.google.internal/",
        "http://router/",
        "http://unknown.example/",
        "http://public.example:8080/",
        "https://public.example:22/",
    ],
)
async def test_everything_else_is_refused_without_a_rule(url: str) -> None:
    assert await decision(url, guard()) == "deny"


async def test_an_empty_allow_list_allows_nothing() -> None:
    using = NetworkGuard(NetworkSettings(allow=()), HostsResolver(parse_hosts(HOSTS)))

    assert await decision("http://public.example/", using) == "deny"


async def test_an_allow_list_is_the_whole_list() -> None:
    using = guard("public.example")

    assert await decision("http://public.example/", using) == "allow"
    assert await decision("http://allowed.example/", using) == "deny"


@pytest.mark.parametrize("rule", ["intranet.corp:8080", "10.0.0.0/24:8080", "10.0.0.5:*"])
async def test_a_named_private_place_can_be_opened(rule: str) -> None:
    using = guard("*", rule)

    assert await decision("http://intranet.corp:8080/", using) == "allow"
    assert await decision("http://127.0.0.1:8080/", using) == "deny"


async def test_a_pattern_does_not_open_private_addresses() -> None:
    assert await decision("http://private.example/", guard("*.example")) == "deny"
    assert await decision("http://public.example/", guard("*.example")) == "allow"


async def test_a_name_does_not_open_the_metadata_service() -> None:
    assert await decision("http://metadata.example/", guard("metadata.example")) == "deny"
    assert await decision("http://metadata.example/", guard("169.254.169.254")) == "allow"


async def test_a_rule_for_an_address_also_holds_for_its_mapped_form() -> None:
    assert await decision("http://[::ffff:10.0.0.5]/", guard("10.0.0.5")) == "allow"


@pytest.mark.parametrize("deny", ["public.example", "*.example", "*", "93.184.216.0/24", "GET public.example"])
async def test_a_deny_outranks_every_allow(deny: str) -> None:
    using = guard("*", "public.example", "93.184.216.34:*", deny=[deny])

    assert await decision("http://public.example/", using) == "deny"


async def test_a_denied_network_is_denied_behind_nat64_too() -> None:
    using = guard("*", deny=["1.2.3.0/24"])

    assert await decision("http://other.example/", using) == "deny"
    assert await decision("http://other64.example/", using) == "deny"


async def test_methods_are_distinguished() -> None:
    using = guard("GET public.example")

    assert await decision("http://public.example/", using) == "allow"
    assert await decision("http://public.example/", using, "POST") == "deny"


async def test_the_reason_says_what_to_add() -> None:
    explained = await guard().explain("http://10.0.0.5/x")

    assert explained == {
        "value": "http://10.0.0.5/x",
        "decision": "deny",
        "reason": "10.0.0.5 is not a public address but private; to open it, add '10.0.0.5:80' to network.allow",
        "rule": None,
        "addresses": ["10.0.0.5"],
        "url": "http://10.0.0.5/x",
        "host": "10.0.0.5",
        "port": 80,
        "code": "E_URL_FORBIDDEN",
    }


@pytest.mark.parametrize(
    ("allow", "url", "method", "reason"),
    [
        (
            "GET public.example:80",
            "http://public.example/",
            "POST",
            "the method POST to public.example:80 needs a rule: add 'POST public.example:80' to network.allow",
        ),
        (
            "GET public.example",
            "http://public.example/",
            "POST",
            "the method POST to public.example:80 needs a rule: add 'POST public.example:80' to network.allow",
        ),
        (
            "public.example:443",
            "http://public.example:8080/",
            "GET",
            "port 8080 of public.example needs a rule: add 'public.example:8080' to network.allow",
        ),
        (
            "other.example",
            "http://public.example/",
            "GET",
            "'public.example' is not in network.allow; add 'public.example' to it",
        ),
        (
            "other.example",
            "http://public.example:8080/",
            "GET",
            "'public.example' is not in network.allow; add 'public.example:8080' to it",
        ),
    ],
)
async def test_the_reason_names_what_is_missing_from_a_rule(allow: str, url: str, method: str, reason: str) -> None:
    assert (await guard(allow).explain(url, method=method))["reason"] == reason


async def test_a_deny_of_a_name_holds_for_its_ports_and_methods_only() -> None:
    using = guard("*:443", "*:8443", deny=["POST public.example:8443"])

    assert await decision("https://public.example:8443/", using, "POST") == "deny"
    assert await decision("https://public.example:8443/", using) == "allow"
    assert await decision("https://public.example/", using, "POST") == "allow"
    assert await decision("https://other.example:8443/", using, "POST") == "allow"


async def test_a_deny_of_a_network_holds_for_its_ports_and_methods_only() -> None:
    using = guard("*", deny=["POST 93.184.0.0/16:8443"])

    assert await decision("https://93.184.216.34/", using, "POST") == "allow"
    assert await decision("https://93.184.216.34/", using) == "allow"
    assert await decision("https://8.8.8.8/", using, "POST") == "allow"


def test_decisions_are_remembered_and_the_memory_has_a_bound() -> None:
    using = guard("*")
    first = using.screen("a0.example", 443, "GET")

    for number in range(MAX_CACHED - 1):
        using.screen(f"b{number}.example", 443, "GET")

    assert using.screen("a0.example", 443, "GET") is first
    using.screen("c.example", 443, "GET")
    assert len(using._candidates) == 1


@pytest.mark.parametrize(
    "url", ["http://10.0.0.5:8080/", "http://[::1]/", "http://public.example:8080/", "http://router/"]
)
@pytest.mark.parametrize("before", ["*", "other.example"])
async def test_the_advice_in_a_reason_works(url: str, before: str) -> None:
    explained = await guard(before).explain(url)
    advice = explained["reason"].partition("add '")[2].partition("'")[0]
    hosts = HostsResolver(parse_hosts(HOSTS + "10.0.0.9 router"))

    using = NetworkGuard(NetworkSettings(allow=(before, advice)), hosts)
    explained = await using.explain(url)

    assert explained["decision"] == "allow", (advice, explained["reason"])


async def test_a_host_that_no_rule_can_allow_is_never_looked_up() -> None:
    async with dns_server({}) as (server, resolver):
        using = NetworkGuard(NetworkSettings(allow=("public.example",)), resolver)
        with pytest.raises(ToolError):
            await using.admit("secret-in-the-name.attacker.example", 443, "GET")

        assert server.asked == []


async def test_a_name_that_does_not_resolve_is_a_failure() -> None:
    with pytest.raises(ToolError) as caught:
        await guard().admit("unknown.example", 80, "GET")

    assert caught.value.code is ErrorCode.HTTP_ERROR


async def test_a_resolver_that_gives_nothing_is_a_failure() -> None:
    class Silent:
        async def resolve(self, _: str) -> Sequence[Address]:
            return []

    with pytest.raises(ToolError):
        await NetworkGuard(resolver=Silent()).admit("public.example", 80, "GET")


async def test_at_most_four_addresses_of_a_name_are_dialled() -> None:
    class Generous:
        async def resolve(self, _: str) -> Sequence[Address]:
            return [ip_address(f"93.184.216.{number}") for number in range(1, 9)]

    admitted = await NetworkGuard(resolver=Generous()).admit("public.example", 80, "GET")

    assert [str(each) for each in admitted.addresses] == [f"93.184.216.{number}" for number in range(1, 5)]


async def test_a_resolver_that_never_answers_is_a_timeout() -> None:
    class Hanging:
        async def resolve(self, _: str) -> Sequence[Address]:
            await asyncio.Event().wait()
            return []

    with pytest.raises(ToolError) as caught:
        await NetworkGuard(NetworkSettings(connect_timeout=0.01), Hanging()).admit("public.example", 80, "GET")

    assert caught.value.code is ErrorCode.HTTP_TIMEOUT


async def test_the_machines_own_resolver_knows_this_machine() -> None:
    assert all(zone(address) is Zone.LOOPBACK for address in await SystemResolver().resolve("localhost"))
    with pytest.raises(ToolError):
        await SystemResolver().resolve("a" * 64 + ".example")


async def test_dialling_goes_to_the_address_that_was_judged_although_the_name_has_moved() -> None:
    async with (
        web_server(lambda _: Answer(body=b"first"), "127.0.0.1") as web,
        dns_server({"moving.example": [["127.0.0.1"], ["127.0.0.9"]]}) as (dns, resolver),
    ):
        using = NetworkGuard(NetworkSettings(allow=(f"127.0.0.1:{web.port}",)), resolver)

        connection = await using.dial("moving.example", web.port, method="GET")
        connection.writer.close()

        assert connection.address == "127.0.0.1"
        assert dns.asked == ["moving.example"]
        with pytest.raises(ToolError, match=r"127\.0\.0\.9"):
            await using.dial("moving.example", web.port, method="GET")


async def test_dialling_a_closed_port_says_so() -> None:
    async with web_server() as web:
        port = web.port
    with pytest.raises(ToolError) as caught:
        await guard(f"127.0.0.1:{port}").dial("127.0.0.1", port, method="GET")

    assert caught.value.code is ErrorCode.HTTP_ERROR


def test_this_machine_knows_its_own_addresses() -> None:
    assert _is_own(IPv4Address("127.0.0.1"))
    assert not _is_own(IPv4Address("255.255.255.255"))


def test_a_hosts_file_with_a_bad_line_names_it() -> None:
    with pytest.raises(ValueError, match="line 2"):
        parse_hosts("127.0.0.1 a\nnonsense b\n")
    assert parse_hosts("# c\n\n1.2.3.4 a.example B.example # d\n::1 a.example\n") == {
        "a.example": [ip_address("1.2.3.4"), ip_address("::1")],
        "b.example": [ip_address("1.2.3.4")],
    }


_addresses = st.one_of(
    st.integers(0, 2**32 - 1).map(IPv4Address),
    st.integers(0, 2**128 - 1).map(IPv6Address),
    st.integers(0, 2**32 - 1).map(lambda value: IPv6Address((0xFFFF << 32) | value)),
    st.integers(0, 2**32 - 1).map(lambda value: IPv6Address((0x2002 << 112) | (value << 80))),
    st.sampled_from(["127.0.0.1", "10.1.2.3", "::1", "fe80::1", "169.254.169.254"]).map(ip_address),
)


@settings(max_examples=200)
@given(st.lists(_addresses, min_size=1, max_size=4))
def test_no_answer_of_a_resolver_leads_to_an_address_that_is_not_public(addresses: list[Address]) -> None:
    using = NetworkGuard(resolver=HostsResolver({"name.example": addresses}))
    with suppress(ToolError):
        using.judge("name.example", 443, "GET", addresses)
        assert all(zone(address) is Zone.PUBLIC for address in addresses)
