"""Every connection is checked by itself, whatever its name resolved to before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.guard.network.client.client import failure, http, send
from tests.network import Answer, dns_server, web_server
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.guard.network.resolver import HostsResolver, parse_hosts


async def test_a_name_that_rebinds_between_two_requests_is_judged_for_each_connection() -> None:
    async with (
        web_server(lambda _: Answer(headers={"connection": "close"})) as good,
        dns_server({"rebind.example": [["127.0.0.1"], ["127.0.0.2"]]}) as (dns, resolver),
        http(f"127.0.0.1:{good.port}", resolver=resolver) as client,
    ):
        assert (await send(client, good.url(host="rebind.example"))).status == 200
        refused = await failure(client, good.url(host="rebind.example"))

        assert refused.code is ErrorCode.URL_FORBIDDEN
        assert "127.0.0.2" in refused.message
        assert len(dns.asked) == 2


async def test_one_forbidden_record_among_good_ones_refuses_the_name() -> None:
    async with (
        web_server() as web,
        dns_server({"mixed.example": [["127.0.0.1", "10.0.0.1"]], "six.example": [["127.0.0.1", "::1"]]}) as (
            _,
            resolver,
        ),
        http(f"127.0.0.1:{web.port}", resolver=resolver) as client,
    ):
        for name in ("mixed.example", "six.example"):
            assert (await failure(client, web.url(host=name))).code is ErrorCode.URL_FORBIDDEN
        assert web.connections == 0


async def test_a_connection_let_through_for_one_method_carries_no_other() -> None:
    async with (
        web_server() as web,
        http(
            f"GET 127.0.0.0/8:{web.port}",
            f"POST 127.0.0.2:{web.port}",
            resolver=HostsResolver(parse_hosts("127.0.0.1 name.example")),
        ) as client,
    ):
        await send(client, web.url(host="name.example"))
        with pytest.raises(ToolError) as caught:
            await send(client, web.url(host="name.example"), "POST", body=b"x")

        assert caught.value.code is ErrorCode.URL_FORBIDDEN
        assert [request.method for request in web.received] == ["GET"]


_hosts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "127.0.0.2",
            "0x7f.2",
            "2130706434",
            "[::1]",
            "[::ffff:7f00:2]",
            "localhost",
            "127.0.0.1@127.0.0.2",
            "①②⑦.0.0.2",
        ]
    ),
    st.integers(0, 2**32).map(str),
)


@settings(max_examples=60, deadline=None)
@given(host=_hosts, prefix=st.sampled_from(["http://", "http://x@", "http:", "//", "http://127.0.0.1\\@", "HTTP://"]))
async def test_no_url_leads_to_a_connection_that_no_rule_allows(host: str, prefix: str) -> None:
    async with web_server(host="127.0.0.2") as secret, http("127.0.0.1:1") as client:
        for url in (f"{prefix}{host}:{secret.port}/", f"{prefix}{host}"):
            with pytest.raises(ToolError):
                await send(client, url)
        assert secret.connections == 0
