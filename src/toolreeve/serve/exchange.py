"""One HTTP request and its response: an ASGI cycle, or one write.

All responses are framed here. Bytes that the connection no longer takes are dropped, never sent on another.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httptools
from starlette.types import ASGIApp, Message, Scope

from toolreeve.serve.access import AccessRefused, Header

if TYPE_CHECKING:
    from toolreeve.serve.protocol import HttpProtocol

FastHandler = Callable[[bytes, "HttpExchange"], Coroutine[Any, Any, None] | None]
"""Given the body, the coroutine that answers the request; None to leave it to the ASGI application."""

CONNECTION = "toolreeve.connection"
"""The key of the connection that a request came on: in its scope, or in the state of a WebSocket's scope."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_STATUS_LINES = {each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus}
_WITHOUT_BODY = {204, 304}


class HttpExchange:
    """`received` counts the bytes of the body, `body` holds those not read yet, and `whole` says that the body is
    complete. `extra_headers` are added to the response. `left` is called if the client disconnects before the response
    is complete."""

    def __init__(
        self, connection: "HttpProtocol", method: bytes, target: bytes, headers: list[Header], http_version: str
    ) -> None:
        self.connection = connection
        self.extra_headers: Sequence[Header] = ()
        self.method = method
        self.target = target
        self.headers = headers
        self.http_version = http_version
        self.body = bytearray()
        self.received = 0
        self.keep_alive = False
        self.expects_continue = False
        self.whole = False
        self.started = False
        self.complete = False
        self.disconnected = False
        self.fast_handler: FastHandler | None = None
        self.access_version = 0
        self.left: Callable[[], None] | None = None
        self.scope: Scope = {}
        self._changed: asyncio.Event | None = None
        self._left_to_send: int | None = None  # None: in chunks, or until the connection closes

    @property
    def is_open_stream(self) -> bool:
        """Whether a response of unknown length has started."""
        return self.started and self._left_to_send is None

    def changed(self) -> None:
        """Wakes `receive`: the body has grown or ended, or the exchange is over."""
        if self._changed is not None:
            self._changed.set()

    def disconnect(self) -> None:
        """The client is gone."""
        if self.complete or self.disconnected:
            return
        self.disconnected = True
        self.changed()
        if self.left is not None:
            left, self.left = self.left, None
            left()

    # Fast path

    def answer(self, status: int, kind: bytes, body: bytes, headers: Sequence[Header] = ()) -> None:
        """Send the whole response."""
        framing = b"content-type: %s\r\ncontent-length: %d\r\n" % (kind, len(body))
        self._write(self._head(status, headers, framing) + (b"" if self.method == b"HEAD" else body))
        self._complete()

    def stream(self, kind: bytes) -> None:
        """Start a chunked response."""
        framing = b"cache-control: no-cache, no-transform\r\ntransfer-encoding: chunked\r\n"
        self._write(self._head(200, (), b"content-type: %s\r\n%s" % (kind, framing)))

    def part(self, data: bytes) -> None:
        self._write(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        """End a chunked response."""
        self._write(b"0\r\n\r\n")
        self._complete()

    # ASGI

    async def run(self, app: ASGIApp) -> None:
        self._changed = asyncio.Event()
        if self.body or self.whole:
            self._changed.set()
        await app(self.scope, self.receive, self.send)

    async def receive(self) -> Message:
        if self.expects_continue and not self.started:
            self.expects_continue = False
            self._write(CONTINUE)
        if not self.disconnected and not self.complete and self._changed is not None:
            self.connection.read_more()
            await self._changed.wait()
            self._changed.clear()
        if self.disconnected or self.complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": not self.whole}

    async def send(self, message: Message) -> None:
        await self.connection.drain()
        if self.disconnected:
            return
        expected = "http.response.body" if self.started else "http.response.start"
        if self.complete or message["type"] != expected:
            raise RuntimeError(f"an application sent {message['type']} out of turn")
        if self.started:
            self._send_body(message.get("body", b""), more=message.get("more_body", False))
        else:
            self._write(self._head(message["status"], message.get("headers", ()), self._framing(message)))

    def _framing(self, message: Message) -> bytes:
        """The framing header, if the application's own headers do not frame the body."""
        for name, value in message.get("headers", ()):
            if name.lower() == b"content-length":
                self._left_to_send = int(value)
            elif name.lower() == b"connection" and b"close" in value.lower():
                self.keep_alive = False
        if self._left_to_send is not None or self.method == b"HEAD":
            return b""
        if message["status"] in _WITHOUT_BODY:
            self._left_to_send = 0
            return b""
        if self.http_version == "1.0":
            return b""
        return b"transfer-encoding: chunked\r\n"

    def _send_body(self, body: bytes, *, more: bool) -> None:
        if self.method != b"HEAD":
            self._send_framed(body, more=more)
        if not more:
            self._complete()

    def _send_framed(self, body: bytes, *, more: bool) -> None:
        if self._left_to_send is not None:
            self._left_to_send -= len(body)
            if self._left_to_send < 0 or (self._left_to_send and not more):
                raise RuntimeError("an application sent a body that does not match its content-length")
            self._write(body)
        elif self.http_version == "1.0":
            self._write(body)
        else:
            chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            self._write(chunk if more else chunk + b"0\r\n\r\n")

    def _head(self, status: int, headers: Sequence[Header], framing: bytes) -> bytes:
        """A response that starts before its request is complete closes the connection afterwards."""
        self.started = True
        self.keep_alive = self.keep_alive and self.whole
        lines = [
            b"%s: %s\r\n" % _checked(each) for each in (*self.connection.default_headers, *self.extra_headers, *headers)
        ]
        if not self.keep_alive:
            lines = [line for line in lines if not line.lower().startswith(b"connection:")]
            lines.append(b"connection: close\r\n")
        return b"%s%s%s\r\n" % (_STATUS_LINES[status], b"".join(lines), framing)

    def _write(self, data: bytes) -> None:
        if data and not self.disconnected:
            self.connection.write(data)

    def _complete(self) -> None:
        self.complete = True
        self.changed()
        self.connection.completed(self)


def new_scope(exchange: HttpExchange, *, client: Any, server: Any) -> Scope:
    """Raises AccessRefused."""
    try:
        url = httptools.parse_url(exchange.target)
    except httptools.HttpParserInvalidURLError:
        raise AccessRefused(400, "the request target is not a URL") from None
    path = url.path or b"/"
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": exchange.http_version,
        "method": exchange.method.decode("ascii"),
        "scheme": "http",
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": url.query or b"",
        "root_path": "",
        "headers": exchange.headers,
        "client": client[:2] if client else None,
        "server": (server or ("", 0))[:2],
    }


def _checked(header: Header) -> Header:
    if b"\r" in header[0] + header[1] or b"\n" in header[0] + header[1]:
        raise RuntimeError("an application sent a header with a line break")
    return header
