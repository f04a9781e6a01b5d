"""Loopback servers for network tests: scripted HTTP, and DNS that may lie.

No test reaches beyond this machine: once this is imported, any connection to a non-loopback address fails.
"""

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from ssl import SSLContext
from typing import Any, cast

from toolreeve.core.urls import Address
from toolreeve.guard.network.resolver import unresolved


def _stay_on_loopback(event: str, args: tuple[Any, ...]) -> None:
    if event != "socket.connect":
        return
    connecting, address = args
    if connecting.type != socket.SOCK_STREAM or connecting.family not in (socket.AF_INET, socket.AF_INET6):
        return
    target = ip_address(str(address[0]).partition("%")[0])
    mapped = getattr(target, "ipv4_mapped", None)
    if not (mapped or target).is_loopback:
        raise AssertionError(f"a test tried to connect to {address}")


sys.addaudithook(_stay_on_loopback)


@dataclass
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


@dataclass
class Answer:
    status: int = 200
    body: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    cookies: Sequence[str] = ()


RawHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class WebServer:
    """Answers each request with what `respond` gives; remembers all it got and how many connections were made."""

    def __init__(self, respond: Callable[[Received], Answer]) -> None:
        self.respond = respond
        self.received: list[Received] = []
        self.connections = 0
        self.port = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while request := await read_request(reader):
            self.received.append(request)
            answer = self.respond(request)
            lines = [f"HTTP/1.1 {answer.status} X"]
            headers = {"content-length": str(len(answer.body))} | answer.headers
            lines += [f"{name}: {value}" for name, value in headers.items() if value]
            lines += [f"set-cookie: {cookie}" for cookie in answer.cookies]
            writer.write("\r\n".join((*lines, "", "")).encode("latin-1"))
            if request.method != "HEAD":
                writer.write(answer.body)
            await writer.drain()
            if request.headers.get("connection") == "close":
                return


async def read_request(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    method, path, _ = line.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in fields)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, path, headers, body)


@contextlib.asynccontextmanager
async def listening(handle: RawHandler, host: str = "127.0.0.1", tls: SSLContext | None = None) -> AsyncIterator[int]:
    """A TCP server; gives its port. Connections still open at the end are broken off."""
    open_writers: set[asyncio.StreamWriter] = set()

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.add(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await handle(reader, writer)
        open_writers.discard(writer)
        writer.close()

    server = await asyncio.start_server(attend, host, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in list(open_writers):
            writer.transport.abort()


@contextlib.asynccontextmanager
async def web_server(
    respond: Callable[[Received], Answer] = lambda _: Answer(), host: str = "127.0.0.1"
) -> AsyncIterator[WebServer]:
    server = WebServer(respond)
    async with listening(server.handle, host) as port:
        server.port = port
        yield server


class DnsServer(asyncio.DatagramProtocol):
    """Answers A and AAAA questions from `answers`: for each name a list of replies, the last of which repeats."""

    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        name, kind, question = _read_question(data)
        if kind == 1:
            self.asked.append(name)
        replies = self.answers.get(name, [[]])
        now = replies[0] if kind == 28 or len(replies) == 1 else replies.pop(0)
        wanted = [text for text in now if (":" in text) == (kind == 28)]
        records = b"".join(_record(kind, text) for text in wanted)
        header = data[:2] + struct.pack("!HHHHH", 0x8180 if now else 0x8183, 1, len(wanted), 0, 0)
        assert self.transport is not None
        self.transport.sendto(header + question + records, addr)


def _read_question(data: bytes) -> tuple[str, int, bytes]:
    labels = []
    place = 12
    while size := data[place]:
        labels.append(data[place + 1 : place + 1 + size].decode())
        place += size + 1
    (kind,) = struct.unpack("!H", data[place + 1 : place + 3])
    return ".".join(labels), kind, data[12 : place + 5]


def _record(kind: int, text: str) -> bytes:
    packed = (IPv6Address if kind == 28 else IPv4Address)(text).packed
    return b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(packed)) + packed


class DnsResolver:
    """Asks one DNS server, every time."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def resolve(self, host: str) -> Sequence[Address]:
        found = [*await self._ask(host, 1), *await self._ask(host, 28)]
        if not found:
            raise unresolved(host, "the DNS server knows no such name")
        return found

    async def _ask(self, host: str, kind: int) -> list[Address]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bytes] = loop.create_future()

        class Client(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
                if not answer.done():
                    answer.set_result(data)

        transport, _ = await loop.create_datagram_endpoint(Client, remote_addr=("127.0.0.1", self.port))
        labels = b"".join(bytes((len(label),)) + label.encode() for label in host.split("."))
        transport.sendto(struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!HH", kind, 1))
        data = await asyncio.wait_for(answer, 5)
        transport.close()
        _, _, question = _read_question(data)
        size = 4 if kind == 1 else 16
        (count,) = struct.unpack("!H", data[6:8])
        place = 12 + len(question)
        make = IPv4Address if kind == 1 else IPv6Address
        return [make(data[place + 12 + n * (12 + size) :][:size]) for n in range(count)]


@contextlib.asynccontextmanager
async def dns_server(answers: dict[str, list[list[str]]]) -> AsyncIterator[tuple[DnsServer, DnsResolver]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: DnsServer(answers), local_addr=("127.0.0.1", 0))
    try:
        yield server, DnsResolver(transport.get_extra_info("sockname")[1])
    finally:
        transport.close()
