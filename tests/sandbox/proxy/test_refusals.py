"""Forbidden hosts are refused by every name, number and protocol."""

import asyncio

import pytest

from tests.network import dns_server, listening, web_server
from tests.sandbox.proxy.proxy_client import exchange, proxy
from tests.sandbox.proxy.test_tls_sni import client_hello

FORBIDDEN = [
    "127.0.0.2",
    "secret.example",
    "0x7f.2",
    "2130706434",
    "[::1]",
    "[::ffff:127.0.0.2]",
    "localhost",
    "10.0.0.1",
]


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_forbidden_hosts_are_refused_in_every_protocol(host: str) -> None:
    async with web_server(host="127.0.0.2") as secret, proxy(f"127.0.0.1:{secret.port}", "open.example:*") as via:
        port = secret.port
        plain = await exchange(via.port, f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode())
        tunnel = await exchange(via.port, f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
        name = host.encode()
        socks = await exchange(
            via.port, b"\x05\x01\x00\x05\x01\x00\x03" + bytes((len(name),)) + name + port.to_bytes(2, "big")
        )

        assert plain.split(b" ")[1] in (b"403", b"502")
        assert tunnel.split(b" ")[1] in (b"403", b"502")
        assert socks[:2] == b"\x05\x00"
        assert socks[3] in (2, 4)
        assert secret.connections == 0
        assert len(via.events) == 3


async def test_a_name_that_rebinds_is_checked_each_time() -> None:
    async with (
        web_server() as web,
        dns_server({"rebind.example": [["127.0.0.1"], ["127.0.0.2"]]}) as (_, resolver),
        proxy(f"127.0.0.1:{web.port}", resolver=resolver) as via,
    ):
        request = f"GET http://rebind.example:{web.port}/ HTTP/1.1\r\n\r\n".encode()

        assert (await exchange(via.port, request)).startswith(b"HTTP/1.1 200")
        assert (await exchange(via.port, request)).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    ("asked", "through"), [("open.example", True), (None, True), ("also.example", True), ("shut.example", False)]
)
async def test_a_tunnel_is_not_used_to_ask_for_another_name(asked: str | None, through: bool) -> None:
    arrived: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read())

    async with listening(listen) as port, proxy(f"open.example:{port}", f"also.example:{port}") as via:
        hello = client_hello(asked)
        record = b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello
        reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
        writer.write(f"CONNECT open.example:{port} HTTP/1.1\r\n\r\n".encode() + record)
        writer.write_eof()
        async with asyncio.timeout(5):
            await reader.read()
        writer.close()

        assert arrived == ([record] if through else [b""])
        assert (await via.event())["decision"] == ("allow" if through else "deny")


async def test_a_rule_for_a_method_does_not_open_a_tunnel() -> None:
    async with web_server() as web, proxy(f"GET open.example:{web.port}") as via:
        place = f"open.example:{web.port}"

        assert (await exchange(via.port, f"GET http://{place}/ HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 200")
        assert (await exchange(via.port, f"POST http://{place}/ HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
        assert (await exchange(via.port, f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
