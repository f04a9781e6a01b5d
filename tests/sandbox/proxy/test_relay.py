"""Allowed connections arrive whole, in every protocol, and emit an event."""

import asyncio

import pytest

from tests.network import Answer, listening, web_server
from tests.sandbox.proxy.proxy_client import exchange, proxy


async def test_a_plain_request_is_forwarded_and_emits_an_event() -> None:
    async with web_server(lambda got: Answer(body=got.path.encode())) as web, proxy(f"open.example:{web.port}") as via:
        request = (
            f"POST http://open.example:{web.port}/a?b HTTP/1.1\r\nHost: elsewhere\r\nProxy-Authorization: x\r\n"
            "Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\nX-Keep: 2\r\nContent-Length: 4\r\n\r\nbody"
        )
        answer = await exchange(via.port, request.encode())

        assert answer.endswith(b"\r\n\r\n/a?b")
        got = web.received[0]
        assert (got.method, got.path, got.body) == ("POST", "/a?b", b"body")
        assert got.headers == {
            "host": f"open.example:{web.port}",
            "x-keep": "2",
            "content-length": "4",
            "connection": "close",
        }
        assert await via.event() == {
            "protocol": "http",
            "method": "POST",
            "host": "open.example",
            "port": web.port,
            "decision": "allow",
            "reason": "",
            "rule": f"open.example:{web.port}",
            "address": "127.0.0.1",
            "bytes_sent": 4,
            "bytes_received": len(answer),
        }
        assert (via.events[0].event, via.events[0].task_id) == ("network_connection", "sandbox-1")


async def test_a_tunnel_carries_bytes_both_ways() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        await writer.drain()

    async with listening(echo) as port, proxy(f"127.0.0.1:{port}") as via:
        reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
        writer.write(f"CONNECT open.example:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(b"hello")
        writer.write_eof()

        assert await reader.read() == b"HELLO"
        writer.close()
        event = await via.event()
        assert (event["protocol"], event["bytes_sent"], event["bytes_received"]) == ("connect", 5, 5)


@pytest.mark.parametrize(
    "place",
    [b"\x03\x0copen.example", b"\x01\x7f\x00\x00\x01", b"\x04" + bytes(10) + b"\xff\xff\x7f\x00\x00\x01"],
    ids=["name", "IPv4", "mapped IPv6"],
)
async def test_socks_carries_bytes_and_resolves_names_itself(place: bytes) -> None:
    async with web_server() as web, proxy(f"127.0.0.1:{web.port}") as via:
        hello = b"\x05\x01\x00" + b"\x05\x01\x00" + place + web.port.to_bytes(2, "big")
        answer = await exchange(via.port, hello + b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")

        assert answer.startswith(b"\x05\x00" + b"\x05\x00\x00\x01" + bytes(6) + b"HTTP/1.1 200")
        assert (await via.event())["protocol"] == "socks5"


async def test_a_chunked_body_arrives_whole() -> None:
    async with web_server() as web, proxy(f"open.example:{web.port}") as via:
        head = f"PUT http://open.example:{web.port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        await exchange(via.port, head.encode() + b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: t\r\n\r\n")

        assert web.received[0].body == b"hello world"
