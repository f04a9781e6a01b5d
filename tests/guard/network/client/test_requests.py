"""Outgoing requests: exactly as given, without foreign headers, cookies or connections."""

from collections.abc import Mapping

import pytest

from tests.guard.network.client.client import http, send
from tests.network import Answer, web_server
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.guard.network.resolver import HostsResolver, parse_hosts


async def test_a_request_arrives_unchanged() -> None:
    async with (
        web_server(lambda _: Answer(status=201, headers={"X-Seen": "yes"})) as web,
        http(f"127.0.0.1:{web.port}") as client,
    ):
        reply = await send(client, web.url("/a b?c=d#e"), "POST", {"X-Key": "1"}, b"hello")

        assert (reply.status, reply.body, reply.headers["x-seen"]) == (201, b"ok", "yes")
        got = web.received[0]
        assert (got.method, got.path, got.body) == ("POST", "/a%20b?c=d", b"hello")
        assert got.headers["host"] == f"127.0.0.1:{web.port}"
        assert got.headers["x-key"] == "1"
        assert got.headers["user-agent"] == "Toolreeve"


async def test_connections_are_pooled() -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        for _ in range(5):
            await send(client, web.url())

        assert (len(web.received), web.connections) == (5, 1)


async def test_the_name_stays_in_the_host_header_while_the_judged_address_is_dialled() -> None:
    async with (
        web_server() as web,
        http(f"127.0.0.1:{web.port}", resolver=HostsResolver(parse_hosts("127.0.0.1 name.example"))) as client,
    ):
        await send(client, web.url(host="name.example"))

        assert web.received[0].headers["host"] == f"name.example:{web.port}"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "internal"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "5"},
        {"Connection": "upgrade"},
        {"X": "a\r\nHost: internal"},
        {"X": "a\nb"},
        {"X Y": "a"},
        {"X\r\nY": "a"},
        {":authority": "internal"},
        {"X": "\0"},
        {"X": "☃"},
        {"": "a"},
    ],
)
async def test_headers_cannot_redirect_or_reframe_a_request(headers: Mapping[str, str]) -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        with pytest.raises(ToolError) as caught:
            await send(client, web.url(), headers=headers)

        assert caught.value.code is ErrorCode.INVALID_PARAMS
        assert web.connections == 0


async def test_no_cookie_is_kept_between_requests() -> None:
    async with (
        web_server(lambda _: Answer(cookies=["id=1; Path=/", "b=2; Path=/"])) as web,
        http(f"127.0.0.1:{web.port}") as client,
    ):
        for headers in ({}, {}, {"Cookie": "mine=1"}):
            await send(client, web.url(), headers=headers)

        assert [request.headers.get("cookie") for request in web.received] == [None, None, "mine=1"]
