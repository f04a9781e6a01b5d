"""HTTP/1.1 request parsing on httptools, with bounds on heads and trailers.

A request that asks for another protocol is parsed as if it did not. A target that names a host names the one of the
Host header, so that whoever judges the latter has judged both.
"""

import logging
from typing import Protocol

import httptools

from toolreeve.serve.access import AccessRefused, Header

MOST_BYTES = 256 * 1024
"""Bytes of a head, or of what follows a body."""
MOST_HEADERS = 256

_logger = logging.getLogger(__name__)


class Receiver(Protocol):
    """What a parser tells of each request. Whatever it raises as Refused is raised by the parser as well."""

    def on_head(self, parser: "RequestParser") -> None: ...

    def on_body(self, data: bytes) -> None: ...

    def on_end(self) -> None: ...


class RequestParser:
    """`begun` says whether a head has begun and not ended; what else can be read here is of the last head.

    Bytes are counted from the last point up to which a request is known to be sound.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._parser = self._new_parser()
        self.begun = False
        self.expects_continue = False
        self.target = b""
        self.headers: list[Header] = []
        self._lines = self.headers
        self._fed = self._size = 0

    def feed(self, data: bytes) -> None:
        """Raises Refused."""
        self._fed = len(data)
        try:
            self._parse(data)
        except httptools.HttpParserError as problem:
            raise _refusal(problem) from None
        self._size += self._fed
        if self._size > MOST_BYTES:
            if self.begun and not self.headers:
                raise AccessRefused(414, f"the target of a request may have {MOST_BYTES} bytes at most")
            raise AccessRefused(431, f"the headers of a request may have {MOST_BYTES} bytes at most")

    @property
    def method(self) -> bytes:
        return self._parser.get_method()

    @property
    def http_version(self) -> str:
        return self._parser.get_http_version()

    @property
    def keep_alive(self) -> bool:
        return self._parser.should_keep_alive()

    # What httptools calls

    def on_message_begin(self) -> None:
        self.begun = True
        self.target = b""
        self.headers = self._lines = []
        self.expects_continue = False
        self._size = -self._fed

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._lines) >= MOST_HEADERS:
            raise AccessRefused(431, f"a request may have {MOST_HEADERS} headers at most")
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expects_continue = True
        self._lines.append((name, value))

    def on_headers_complete(self) -> None:
        if self._parser.should_upgrade():
            if self.method == b"CONNECT":
                raise AccessRefused(400, "this is no proxy")
            return
        self.begun = False
        self._size = -self._fed
        self._lines = []  # what follows a body is not part of the head that is judged
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
        """httptools gives up a request that asks for another protocol at the end of its head."""
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
            raise AccessRefused(400, "the target of the request names no host")
        if [value.lower() for name, value in self.headers if name == b"host"] != [authority.lower()]:
            raise AccessRefused(421, "the target of the request names another host than its Host header")

    def _new_parser(self) -> httptools.HttpRequestParser:
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # what follows the last request is dropped
        return parser


def _refusal(problem: httptools.HttpParserError) -> AccessRefused:
    cause = problem.__context__
    if isinstance(cause, AccessRefused):
        return cause
    _logger.warning("a request could not be parsed: %.200r", cause or problem)
    return AccessRefused(400, "Invalid HTTP request received.")
