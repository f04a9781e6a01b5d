"""Slow, idle, endless and failing connections; none outlives the proxy."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.network import listening, web_server
from tests.sandbox.proxy.proxy_client import exchange, proxy
from toolreeve.core.urls import Address
from toolreeve.sandbox.proxy.server import ProxyLimits


@pytest.mark.parametrize("said", [b"", b"GET http://open", b"\x05\x01", b"\x05\x01\x00\x05\x01\x00\x03\xff"])
async def test_a_client_without_a_request_is_disconnected(said: bytes) -> None:
    async with proxy("*", limits=ProxyLimits(head_timeout=0.05)) as via:
        await exchange(via.port, said)
        assert "no request within" in str((await via.event())["reason"])


async def test_an_idle_connection_is_closed() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        await asyncio.Event().wait()

    async with listening(silent) as port, proxy(f"127.0.0.1:{port}", limits=ProxyLimits(idle_timeout=0.05)) as via:
        await exchange(via.port, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert "idle for" in str((await via.event())["reason"])


async def test_the_bytes_of_a_connection_are_capped() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(65536))
            await writer.drain()

    async with listening(endless) as port, proxy(f"127.0.0.1:{port}", limits=ProxyLimits(max_bytes=200_000)) as via:
        answer = await exchange(via.port, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())

        assert len(answer) < 300_000
        assert "200000 bytes" in str((await via.event())["reason"])


async def test_clients_beyond_the_connection_limit_wait() -> None:
    async with web_server() as web, proxy(f"127.0.0.1:{web.port}", limits=ProxyLimits(connections=2)) as via:
        request = f"GET http://127.0.0.1:{web.port}/ HTTP/1.1\r\n\r\n".encode()
        answers = await asyncio.gather(*(exchange(via.port, request) for _ in range(20)))

        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)


async def test_a_connection_that_crashes_does_not_take_the_others_down() -> None:
    class Failing:
        async def resolve(self, _: str) -> Sequence[Address]:
            raise ZeroDivisionError("unforeseen")

    async with web_server() as web, proxy(f"127.0.0.1:{web.port}", resolver=Failing()) as via:
        assert await exchange(via.port, f"GET http://open.example:{web.port}/ HTTP/1.1\r\n\r\n".encode()) == b""
        fine = await exchange(via.port, f"GET http://127.0.0.1:{web.port}/ HTTP/1.1\r\n\r\n".encode())

        assert fine.startswith(b"HTTP/1.1 200")
        assert (await via.event())["reason"] == "ZeroDivisionError: unforeseen"


async def test_connections_end_with_the_proxy() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as port:
        async with proxy(f"127.0.0.1:{port}") as via:
            reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
            writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def test_a_command_reaches_only_the_hosts_that_it_was_allowed_for() -> None:
    hosts = frozenset(("open.example",))
    async with web_server() as web, proxy(f"127.0.0.1:{web.port}", f"*.example:{web.port}", hosts=hosts) as via:
        refused = await exchange(via.port, f"GET http://127.0.0.1:{web.port}/ HTTP/1.1\r\n\r\n".encode())
        named = await exchange(via.port, f"GET http://open.example:{web.port}/ HTTP/1.1\r\n\r\n".encode())

    assert refused.startswith(b"HTTP/1.1 403")
    assert b"allowed to contact only open.example" in refused
    assert b"allowed to contact only" not in named
