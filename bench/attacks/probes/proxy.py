"""Probes of the sandbox's proxy: request smuggling and other TLS names.

Upstream is a listener on loopback that writes down what reaches it; it reads requests as their own headers frame them.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.attacks.probes.testbed import Testbed, Verdict, judge, probe
from toolreeve.config import Commands, Network

SPELLINGS = (
    "127.0.0.1",
    "localhost",
    "0",
    "127.1",
    "2130706433",
    "0x7f.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0177.0.0.1",
    "127.0.0.1.",
    "LOCALHOST.",
    "[::]",
    "0.0.0.0",
    "localhost%00.example",
)
SMUGGLED = b"POST /SMUGGLED HTTP/1.1\r\nHost: other.vhost\r\nContent-Length: 0\r\n\r\n"
QUIET = 0.8
SEND = """
import socket, threading
def speak(pieces):
    try:
        line = socket.create_connection(("127.0.0.1", 3128), timeout=4)
        line.settimeout({quiet})
        for piece in pieces:
            line.sendall(piece)
            if piece.startswith(b"CONNECT"):
                line.recv(4096)
        while line.recv(4096):
            pass
    except OSError:
        pass
threads = [threading.Thread(target=speak, args=(pieces,)) for pieces in {conversations!r}]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("END")
"""


class Upstream:
    """`lines` are the request lines as a server would read them; `seen` are the bytes that came, in their order."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.seen = b""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """An answer to each request that is whole; the connection is kept, whatever the request says."""
        waiting = b""
        with contextlib.suppress(TimeoutError, OSError):
            while piece := await asyncio.wait_for(reader.read(65536), QUIET):
                self.seen += piece
                waiting += piece
                while (end := _end_of_request(waiting)) is not None:
                    self.lines.append(waiting.split(b"\r\n")[0])
                    waiting = waiting[end:]
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()


def _end_of_request(data: bytes) -> int | None:
    """Where the first request ends by its own headers; None while it is not whole."""
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator:
        return None
    fields = [line.partition(b":") for line in head.replace(b"\r", b"").split(b"\n")[1:]]
    headers = {name.strip().lower(): value.strip() for name, _, value in fields}
    start = len(head) + 4
    if b"chunked" in headers.get(b"transfer-encoding", b""):
        at = body.find(b"0\r\n\r\n")
        return None if at < 0 else start + at + 5
    digits = headers.get(b"content-length", b"0").split(b",")[0].strip(b"+ ")
    size = int(digits) if digits.isdigit() else 0
    return start + size if len(body) >= size else None


@asynccontextmanager
async def upstreams(count: int) -> AsyncIterator[list[Upstream]]:
    """One for each conversation, so that each knows its own."""
    heard = [Upstream() for _ in range(count)]
    async with contextlib.AsyncExitStack() as stack:
        for each in heard:
            server = await asyncio.start_server(each.serve, "127.0.0.1", 0)
            stack.callback(server.close)
            each.port = server.sockets[0].getsockname()[1]
        yield heard


async def speak(testbed: Testbed, conversations: list[list[bytes]]) -> None:
    """All at once, each on a connection of its own to the proxy."""
    outcome = await testbed.python(SEND.format(quiet=QUIET, conversations=conversations), timeout=25)
    assert "END" in outcome.stdout, outcome.error + outcome.stderr


def requests(port: int) -> dict[str, bytes]:
    """Requests whose end two parsers may see at different places."""
    start = f"GET http://127.0.0.1:{port}/a HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n".encode()
    body = SMUGGLED
    size = str(len(body)).encode()
    chunked = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    return {
        "Connection: content-length": start
        + b"Connection: content-length\r\nContent-Length: "
        + size
        + b"\r\n\r\n"
        + body,
        "Connection: transfer-encoding": start
        + b"Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n"
        + chunked,
        "Connection: close, Content-Length": start
        + b"Connection: close, Content-Length\r\nContent-Length: "
        + size
        + b"\r\n\r\n"
        + body,
        "two Connection headers": start
        + b"Connection: x\r\nConnection: CONTENT-LENGTH\r\nContent-Length: "
        + size
        + b"\r\n\r\n"
        + body,
        "Proxy-Connection": start + b"Proxy-Connection: content-length\r\nContent-Length: " + size + b"\r\n\r\n" + body,
        "Keep-Alive and TE": start
        + b"Connection: te, content-length\r\nTE: trailers\r\nContent-Length: "
        + size
        + b"\r\n\r\n"
        + body,
        "both lengths": start + b"Content-Length: " + size + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + body,
        "two lengths": start + b"Content-Length: 0\r\nContent-Length: " + size + b"\r\n\r\n" + body,
        "list of lengths": start + b"Content-Length: 0, " + size + b"\r\n\r\n" + body,
        "length with a sign": start + b"Content-Length: +" + size + b"\r\n\r\n" + body,
        "space before the colon": start + b"Content-Length : " + size + b"\r\n\r\n" + body,
        "folded header": start + b"X: y\r\n Content-Length: " + size + b"\r\n\r\n" + body,
        "bare LF": start + b"X: y\nContent-Length: " + size + b"\r\n\r\n" + body,
        "chunked, chunked": start + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + chunked,
        "xchunked": start + b"Transfer-Encoding: xchunked\r\n\r\n" + chunked,
        "chunk size with a sign": start + b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n" + body,
        "chunk extension with a line end": start + b"Transfer-Encoding: chunked\r\n\r\n0;a\n\r\n\r\n" + body,
        "pipelined": start + b"\r\n" + body,
        "NUL in a name": start + b"Content-Length\0: 0\r\nContent-Length: " + size + b"\r\n\r\n" + body,
        "HTTP/1.0 keep-alive": start.replace(b"1.1", b"1.0")
        + b"Connection: keep-alive, content-length\r\nContent-Length: "
        + size
        + b"\r\n\r\n"
        + body,
        "trailers": start
        + b"Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 9\r\n\r\n"
        + body,
        "Upgrade": start + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n" + body,
    }


@probe("M2", f"a second request behind the first, in {len(requests(0))} framings")
async def smuggling(testbed: Testbed) -> Verdict:
    names = ["plain", *requests(0)]
    async with upstreams(len(names)) as heard:
        testbed.configure(commands=Commands(network="guarded"), network=Network(allow=("GET 127.0.0.1:*",)))
        plain = f"GET http://127.0.0.1:{heard[0].port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        hostile = [requests(each.port)[name] for name, each in zip(names[1:], heard[1:], strict=True)]
        await speak(testbed, [[data] for data in (plain, *hostile)])
        assert heard[0].lines, "the plain request did not arrive"
        through = [
            name for name, each in zip(names, heard, strict=True) if any(b"SMUGGLED" in line for line in each.lines)
        ]
        return judge([f"arrived: {', '.join(through)}"] if through else [])


def client_hello(name: str) -> bytes:
    """The first bytes of a client that asks for this name."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("no handshake without a server")


def name_read_by_openssl(data: bytes) -> str:
    """Whom a server would serve that got these bytes."""
    asked: list[str] = []
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: asked.append(name or "")
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(data)
    with contextlib.suppress(ssl.SSLError):
        server.do_handshake()
    return asked[0] if asked else ""


def asks_for_evil(data: bytes) -> bool:
    """By the judgement of OpenSSL, or because it begins like TLS and another server may read it otherwise."""
    return name_read_by_openssl(data) == "evil.test" or (data[:1] == b"\x16" and b"evil.test" in data)


def openings() -> dict[str, list[bytes]]:
    hello = client_hello("evil.test")
    payload = hello[5:]
    half = len(payload) // 2
    record = [b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (payload[:half], payload[half:])]
    return {
        "as it is": [hello],
        "behind an empty record": [b"\x16\x03\x01\x00\x00" + hello],
        "behind three empty records": [b"\x16\x03\x01\x00\x00" * 3 + hello],
        "in two records": [b"".join(record)],
        "behind an alert": [b"\x15\x03\x01\x00\x02\x01\x00" + hello],
        "behind a change of cipher": [b"\x14\x03\x03\x00\x01\x01" + hello],
        "with a version of 3.4": [hello[:1] + b"\x03\x04" + hello[3:]],
        "with a version of 2.0": [hello[:1] + b"\x02\x00" + hello[3:]],
        "with a length of 16385": [b"\x16\x03\x01\x40\x01" + payload + bytes(16385 - len(payload))],
        "as an SSL 2 hello": [b"\x80" + bytes([len(payload) & 255]) + payload],
        "byte by byte": [hello[at : at + 1] for at in range(40)] + [hello[40:]],
        "behind a hello request": [b"\x16\x03\x01\x00\x04\x00\x00\x00\x00" + hello],
        "behind application data": [b"\x17\x03\x03\x00\x00" + hello],
        "behind a heartbeat": [b"\x18\x03\x01\x00\x03\x01\x00\x00" + hello],
        "behind a line end": [b"\r\n" + hello],
    }


@probe("M3", f"a TLS name that the tunnel was not judged for, in {len(openings())} openings")
async def tls_name(testbed: Testbed) -> Verdict:
    kinds = {"plain": [b"hello"], **openings()}
    async with upstreams(len(kinds)) as heard:
        testbed.configure(commands=Commands(network="guarded"), network=Network(allow=("localhost:*",)))
        connects = [f"CONNECT localhost:{each.port} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for each in heard]
        await speak(testbed, [[connect, *pieces] for connect, pieces in zip(connects, kinds.values(), strict=True)])
        assert name_read_by_openssl(client_hello("evil.test")) == "evil.test"
        assert heard[0].seen == b"hello", "a plain tunnel carries nothing"
        through = [name for name, each in zip(kinds, heard, strict=True) if asks_for_evil(each.seen)]
        return judge([f"arrived: {', '.join(through)}"] if through else [])


@probe("new", f"proxy: private addresses in {len(SPELLINGS)} spellings by CONNECT, SOCKS and plain requests")
async def addresses(testbed: Testbed) -> Verdict:
    async with upstreams(1) as heard:
        testbed.configure(commands=Commands(network="guarded"), network=Network(allow=("*",)))
        port = heard[0].port
        get = b"GET / HTTP/1.1\r\n\r\n"
        conversations = []
        for host in SPELLINGS:
            name = host.strip("[]").encode()
            socks = b"\x05\x01\x00\x05\x01\x00\x03" + bytes([len(name)]) + name + port.to_bytes(2, "big")
            conversations.append([f"CONNECT {host}:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), get])
            conversations.append([f"GET http://{host}:{port}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode()])
            conversations.append([socks + get])
        await speak(testbed, conversations)
        return judge([f"{heard[0].seen[:40]!r} arrived"] if heard[0].seen else [], f"{len(conversations)} attempts")
