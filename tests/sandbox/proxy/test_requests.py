"""One connection, one request, one meaning: ambiguous requests are refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network import web_server
from tests.sandbox.proxy.proxy_client import exchange, proxy
from toolreeve.sandbox.proxy.requests import MalformedRequest, parse_head


@given(st.binary(max_size=80), st.sampled_from([b"", b"GET http://a.example/ HTTP/1.1\r\n", b"CONNECT "]))
def test_any_head_is_a_request_or_malformed(data: bytes, start: bytes) -> None:
    with suppress(MalformedRequest):
        wanted = parse_head(start + data + b"\r\n\r\n")
        assert 0 < wanted.port < 65536
        assert wanted.head.count(b"\r\n\r\n") == (1 if wanted.head else 0)


@pytest.mark.parametrize(
    "body", ["Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "\r\n"]
)
async def test_a_second_request_behind_the_first_is_dropped(body: str) -> None:
    async with web_server() as web, proxy(f"open.example:{web.port}") as via:
        first = f"POST http://open.example:{web.port}/1 HTTP/1.1\r\n{body}"
        hidden = f"DELETE /2 HTTP/1.1\r\nHost: internal\r\n\r\nDELETE http://open.example:{web.port}/3 HTTP/1.1\r\n\r\n"
        await exchange(via.port, (first + hidden).encode())

        assert [(got.method, got.path) for got in web.received] == [("POST", "/1")]


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: open.example\r\n\r\n",
        b"GET https://open.example/ HTTP/1.1\r\n\r\n",
        b"GET ftp://open.example/ HTTP/1.1\r\n\r\n",
        b"GET http://user@open.example/ HTTP/1.1\r\n\r\n",
        b"GET http://open.example/ HTTP/2.0\r\n\r\n",
        b"get http://open.example/ HTTP/1.1\r\n\r\n",
        b"CONNECT open.example HTTP/1.1\r\n\r\n",
        b"CONNECT open.example:0 HTTP/1.1\r\n\r\n",
        b"CONNECT a@open.example:80 HTTP/1.1\r\n\r\n",
        b"POST http://open.example/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"POST http://open.example/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST http://open.example/ HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc",
        b"POST http://open.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST http://open.example/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nA: b\nContent-Length: 5\r\n\r\n",
        b"GET http://open.example/\0 HTTP/1.1\r\n\r\n",
        b"POST http://open.example/ HTTP/1.1\r\nConnection: content-length\r\nContent-Length: 3\r\n\r\nabc",
        b"PUT http://open.example/ HTTP/1.1\r\nConnection: a,\tTransfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nConnection: close\r\nConnection: host\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        b"HEAD http://open.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST http://open.example/ HTTP/1.1\r\nContent_Length: 3\r\n\r\n",
        b"POST http://open.example/ HTTP/1.1\r\nExpect: x 100-continue\r\n\r\n",
        b"POST http://open.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT open.example:80 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
        b"CONNECT open.example:80 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"CONNECT open.example:80 HTTP/1.1\r\nnot a header\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nA: " + b"b" * 70_000,
    ],
)
async def test_ambiguous_requests_are_refused(said: bytes) -> None:
    async with proxy("open.example") as via:
        assert (await exchange(via.port, said)).startswith(b"HTTP/1.1 400")
        assert (await via.event())["decision"] == "deny"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"\x05\x01\x02", b"\x05\xff"),
        (b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x07"),
        (b"\x05\x01\x00\x05\x01\x00\x09", b"\x05\x00\x05\x08"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x03a b\x00\x50", b"\x05\x00\x05\x02"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x03a\x00b\x00\x50", b"\x05\x00\x05\x02"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", b"\x05\x00\x05\x02"),
    ],
)
async def test_unsupported_socks_is_refused_in_socks(said: bytes, answer: bytes) -> None:
    async with proxy("*") as via:
        assert (await exchange(via.port, said)).startswith(answer)
