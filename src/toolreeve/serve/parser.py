"""HTTP/1.1 request parsing on httptools, with bounds on heads and trailers.

An upgrade request is parsed as a plain one. A target that names a host must name the one of the Host header, so that
checking the header checks both.
"""

import logging
from typing import TYPE_CHECKING

import httptools

from toolreeve.serve.access import AccessRefused, Header

if TYPE_CHECKING:
    from toolreeve.serve.request_queue import RequestQueue

MAX_BYTES = 256 * 1024
"""Limit of a request head, and of trailers."""
MAX_HEADERS = 256

_logger = logging.getLogger(__name__)


class RequestParser:
    """Tells the queue of each request: an AccessRefused that it raises is raised here too. `begun` says whether a head
    has begun and not ended; the other attributes describe the last head.

    Bytes are counted from the last point up to which the request is known to be valid.
    """

    def __init__(self, receiver: "RequestQueue") -> None:
        self._receiver = receiver
        self._parser = self._new_parser()
        self.begun = False
        self.expects_continue = False
        self.target = b""
        self.headers: list[Header] = []
        self._lines = self.headers
        self._fed = 0
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Raises AccessRefused."""
        self._fed = len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as problem:
            raise _refusal(problem) from None
        self._size += self._fed
        if self._size > MAX_BYTES:
            if self.begun and not self.headers:
                raise AccessRefused(414, f"the request target exceeds {MAX_BYTES} bytes")
            raise AccessRefused(431, f"the request headers exceed {MAX_BYTES} bytes")

    @property
    def method(self) -> bytes:
        return self._parser.get_method()

    @property
    def http_version(self) -> str:
        return self._parser.get_http_version()

    @property
    def keep_alive(self) -> bool:
        return self._parser.should_keep_alive()

    # Called by httptools

    def on_message_begin(self) -> None:
        self.begun = True
        self.target = b""
        self.headers = self._lines = []
        self.expects_continue = False
        self._size = -self._fed

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._lines) >= MAX_HEADERS:
            raise AccessRefused(431, f"the request has more than {MAX_HEADERS} headers")
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expects_continue = True
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        if self._parser.should_upgrade():
            if self.method == b"CONNECT":
                raise AccessRefused(400, "CONNECT is not supported: this is not a proxy")
            return
        self.begun = False
        self._size = -self._fed
        self._lines = []  # trailers are not part of the checked head
        if not self.target.startswith((b"/", b"*")):
            self._check_authority()
        self._receiver.on_head(self)

    def on_body(self, data: bytes) -> None:
        self._size = -self._fed
        self._receiver.on_body(data)

    def on_message_complete(self) -> None:
        if not self._parser.should_upgrade():
            self._size = -self._fed
            self._receiver.on_end()

    def _parse(self, data: bytes) -> None:
        """httptools stops at the end of the head of an upgrade request."""
        while True:
            try:
                self._parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as found:
                data = data[found.args[0] :]
                head = self._head_without_upgrade()
                self._parser = self._new_parser()
                self._parser.feed_data(head)

    def _head_without_upgrade(self) -> bytes:
        first = b"%s %s HTTP/%s\r\n" % (self.method, self.target, self.http_version.encode())
        return first + b"".join([b"%s: %s\r\n" % each for each in self.headers if each[0] != b"upgrade"]) + b"\r\n"

    def _check_authority(self) -> None:
        authority = self.target.partition(b"//")[2]
        for end in (b"/", b"?", b"#"):
            authority = authority.partition(end)[0]
        if not authority:
            raise AccessRefused(400, "the request target names no host")
        if [value.lower() for name, value in self.headers if name == b"host"] != [authority.lower()]:
            raise AccessRefused(421, "the request target and the Host header name different hosts")

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # data after the last request is dropped
        return parser


def _refusal(problem: httptools.HttpParserError) -> AccessRefused:
    cause = problem.__context__
    if isinstance(cause, AccessRefused):
        return cause
    _logger.warning("a request could not be parsed: %.200r", cause or problem)
    return AccessRefused(400, "Invalid HTTP request received.")
