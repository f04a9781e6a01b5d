"""Three other HTTP servers see what the proxy judged: one request, its method, host and path, and nothing behind it."""

import asyncio
import contextlib
import http.server
import random
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import h11
import httptools
import pytest
import uvicorn

from tests.network import listening
from tests.sandbox.proxy.proxy_client import RunningProxy, proxy
from toolreeve.sandbox.proxy.requests import MalformedRequest, ProxyRequest, parse_head

CASES = 1500
SMUGGLED = b"POST /SMUGGLED HTTP/1.1\r\nHost: other.vhost\r\nContent-Length: 0\r\n\r\n"


@dataclass
class Upstream:
    """A real server behind a tap. `seen` are the requests it was given, `raw` the bytes of each connection.

    `ended` is released for each connection that the server will see no more of.
    """

    ended: asyncio.Semaphore
    loop: asyncio.AbstractEventLoop
    port: int = 0
    seen: list[tuple[str, str, str, bytes]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)


def app_of(upstream: Upstream) -> Any:
    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        host = b",".join(value for name, value in scope["headers"] if name == b"host").decode()
        path = scope["raw_path"].decode() + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        upstream.seen.append((scope["method"], host, path, body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    return app


@contextlib.asynccontextmanager
async def uvicorn_server(upstream: Upstream, kind: str) -> AsyncIterator[int]:
    config = uvicorn.Config(app_of(upstream), http=kind, ws="none", lifespan="off", log_level="critical")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server._serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await serving


class Obstinate(http.server.BaseHTTPRequestHandler):
    """A server that ignores `Connection: close` and takes whatever follows a request for the next one."""

    protocol_version = "HTTP/1.1"
    raw_requestline: bytes
    upstream: Upstream

    def handle_one_request(self) -> None:
        super().handle_one_request()
        self.close_connection = not self.raw_requestline

    def _serve(self) -> None:
        host = ",".join(self.headers.get_all("host", []))
        path = self.requestline.split(" ")[1]  # `self.path` is without a second slash at its beginning
        self.upstream.seen.append((self.command, host, path, self._body()))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)  # the proxy need not wait; we go on reading

    def finish(self) -> None:
        with contextlib.suppress(OSError):
            super().finish()
        self.upstream.loop.call_soon_threadsafe(self.upstream.ended.release)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do_TRACE = _serve

    def log_message(self, *_: object) -> None:
        """Tests keep quiet."""


@contextlib.asynccontextmanager
async def standard_server(upstream: Upstream) -> AsyncIterator[int]:
    handler = type("Handler", (Obstinate,), {"upstream": upstream})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


@contextlib.asynccontextmanager
async def tapped(kind: str) -> AsyncIterator[Upstream]:
    upstream = Upstream(asyncio.Semaphore(0), asyncio.get_running_loop())
    serving = standard_server(upstream) if kind == "http.server" else uvicorn_server(upstream, kind)
    async with serving as behind:

        async def tap(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", behind)
            place = len(upstream.raw)
            upstream.raw.append(b"")

            async def forth() -> None:
                while piece := await reader.read(65536):
                    upstream.raw[place] += piece
                    far_writer.write(piece)
                far_writer.write_eof()

            forwarding = asyncio.create_task(forth())
            while piece := await far_reader.read(65536):
                writer.write(piece)
            with contextlib.suppress(OSError):
                writer.write_eof()
            with contextlib.suppress(OSError):
                await forwarding
            far_writer.close()
            if kind != "http.server":
                upstream.ended.release()

        async with listening(tap) as upstream.port:
            yield upstream


LENGTHS = [b"0", b"3", b"03", b"+3", b"3 ", b"0x3", b"3, 3", b"-1", b"", b"9" * 40, b"\xb2"]
CODINGS = [b"chunked", b"Chunked", b"\tchunked", b"chunked ", b"identity", b"gzip, chunked", b"chunked, chunked", b"x"]
OPTIONS = [
    b"close",
    b"keep-alive",
    b"content-length",
    b"Transfer-Encoding",
    b"close, content-length",
    b"host",
    b"x-a, \ttransfer-encoding\t",
    b"upgrade, http2-settings",
    b"expect",
]
OTHERS = [
    b"X-A: 1",
    b"X-A: a\x85b\xff",
    b"X-A: a\x0bb",
    b"X-A: a\0b",
    b"X-A: a\nTransfer-Encoding: chunked",
    b"X-A: a\rTransfer-Encoding: chunked",
    b"X-A: a\r\n Transfer-Encoding: chunked",
    b"X-A : 1",
    b" X-A: 1",
    b"X-A",
    b": 1",
    b"Content_Length: 3",
    b"Transfer_Encoding: chunked",
    b"Host: other.vhost",
    b"Host: other.vhost\r\nHost: another.vhost",
    b"Expect: 100-continue",
    b"Expect: x 100-continue",
    b"Upgrade: websocket",
    b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    b"Trailer: Content-Length",
    b"TE: trailers",
    b"Proxy-Connection: keep-alive",
    b"Keep-Alive: timeout=5",
]
BODIES = [
    b"",
    b"abc",
    b"abc" + SMUGGLED,
    SMUGGLED,
    b"3\r\nabc\r\n0\r\n\r\n",
    b"3\r\nabc\r\n0\r\n\r\n" + SMUGGLED,
    b"3;a=b\r\nabc\r\n0;x\r\nContent-Length: 3\r\n\r\n" + SMUGGLED,
    b"0003 ;x\r\nabc\r\n0\r\n\r\n",
    b"3\nabc\r\n0\r\n\r\n",
    b"3\r\nabcd\r\n0\r\n\r\n",
    b"0x3\r\nabc\r\n0\r\n\r\n",
    b"-1\r\nabc\r\n0\r\n\r\n",
    b"1" + b"0" * 16 + b"\r\nabc\r\n0\r\n\r\n",
    b"0\r\n\r\n" + SMUGGLED,
    b"0\r\nX: a\nb\r\n\r\n" + SMUGGLED,
    b"3;a\nb\r\nabc\r\n0\r\n\r\n",
]
PATHS = [b"/", b"/a?b=c", b"", b"//other.vhost/a", b"/a#b", b"/%2e%2e/a", b"/a\\b", b"/a\tb", b"/a b", b"?q", b"/;x"]


def generated(seed: int, port: int) -> bytes:
    chance = random.Random(seed)
    host = chance.choices([b"open.example", b"OPEN.example.", b"user@open.example", b"open.example@evil"], (8, 1, 1, 1))
    place = b"http://%s:%d%s" % (host[0], port, chance.choices(PATHS, (9, 9, 2, 2, 1, 1, 1, 1, 1, 1, 1))[0])
    method = chance.choice([b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"POST", b"PATCH"])
    target = chance.choices([place, b"/a", b"*"], (20, 1, 1))[0]
    version = chance.choices([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"http/1.1"], (16, 4, 1, 1))[0]
    fields = chance.sample(OTHERS, chance.choice((0, 0, 1, 2)))
    fields += [b"Connection: " + option for option in chance.sample(OPTIONS, chance.choice((0, 0, 1)))]
    fields += [
        b"Content-Length: " + each for each in chance.choices(LENGTHS, (2, 9, *[1] * 9), k=chance.choice((0, 1)))
    ]
    fields += [
        b"Transfer-Encoding: " + each for each in chance.choices(CODINGS, (9, *[1] * 7), k=chance.choice((0, 1)))
    ]
    chance.shuffle(fields)
    end = chance.choices([b"\r\n", b"\n", b"\r"], (30, 1, 1))[0]
    head = end.join((b" ".join((method, target, version)), *fields, b"", b""))
    return head + chance.choice(BODIES)


def judged(said: bytes) -> ProxyRequest | None:
    head, end, _ = said.partition(b"\r\n\r\n")
    try:
        return parse_head(head + end) if end else None
    except MalformedRequest:
        return None


async def sent(via: RunningProxy, said: bytes) -> None:
    """Until the proxy has event what became of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
    via.events.clear()
    writer.write(said)
    writer.write_eof()
    async with asyncio.timeout(10):
        await reader.read()
    writer.close()
    if b"\r\n\r\n" in said:  # else no request came at all
        await via.event()


def parsed_by_h11(raw: bytes) -> Iterator[str]:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(raw)
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            yield event.method.decode()
        if event is h11.NEED_DATA or event is h11.PAUSED:
            assert connection.trailing_data[0] == b"" or event is h11.NEED_DATA
            return


def parsed_by_httptools(raw: bytes) -> list[str]:
    methods: list[str] = []

    class Listener:
        def on_headers_complete(self) -> None:
            methods.append(parser.get_method().decode())

    parser = httptools.HttpRequestParser(Listener())
    parser.feed_data(raw)  # raises for bytes that follow a request with `Connection: close`
    return methods


@pytest.mark.parametrize("kind", ["h11", "httptools", "http.server"])
async def test_a_server_sees_the_one_request_that_was_checked(kind: str) -> None:
    passed = 0
    async with tapped(kind) as upstream, proxy(f"open.example:{upstream.port}") as via:
        for seed in range(CASES):
            said = generated(seed, upstream.port)
            wanted = judged(said)
            upstream.seen.clear()
            upstream.raw.clear()
            await sent(via, said)

            if wanted is None:
                assert (upstream.seen, upstream.raw) == ([], []), said
                continue
            async with asyncio.timeout(10):
                await upstream.ended.acquire()
            assert len(upstream.raw) == 1, said
            assert list(parsed_by_h11(upstream.raw[0])) == [wanted.method], said
            assert parsed_by_httptools(upstream.raw[0]) == [wanted.method], said
            path = wanted.head.split(b" ")[1].decode()
            expected = (wanted.method, f"open.example:{upstream.port}", path)
            assert [request[:3] for request in upstream.seen] in ([], [expected]), said
            passed += len(upstream.seen)

    assert passed > CASES / 10


@pytest.mark.parametrize("kind", ["h11", "httptools", "http.server"])
@pytest.mark.parametrize(
    "framing",
    [b"Content-Length: %d" % len(SMUGGLED), b"Transfer-Encoding: chunked"],
    ids=["content-length", "transfer-encoding"],
)
async def test_framing_cannot_be_taken_away_by_connection(kind: str, framing: bytes) -> None:
    name = framing.partition(b":")[0]
    async with tapped(kind) as upstream, proxy(f"POST open.example:{upstream.port}") as via:
        start = b"POST http://open.example:%d/a HTTP/1.1\r\n" % upstream.port
        await sent(via, start + b"Connection: " + name + b"\r\n" + framing + b"\r\n\r\n" + SMUGGLED)

        assert (upstream.seen, upstream.raw) == ([], [])
        assert (await via.event())["decision"] == "deny"
