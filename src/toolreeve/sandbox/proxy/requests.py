"""Requests to the proxy: SOCKS5, CONNECT, or one plain HTTP request.

Exactly one request is read from a connection, with one meaning: what two parsers could frame differently is refused.
Host, framing and connection headers are never copied from the client: they are written anew from what was checked.
"""

import asyncio
import re
import socket
import struct
from dataclasses import dataclass

from toolreeve.core.errors import ToolError
from toolreeve.core.urls import parse_host, parse_port, parse_url

MAX_HEAD = 64 * 1024
TUNNEL = "CONNECT"
_LINE = re.compile(r"([A-Z]{1,20}) ([\x21-\x7e]+) (HTTP/1\.[01])")
_FIELD = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_FRAMING = frozenset({"host", "content-length", "transfer-encoding"})
_HOP_BY_HOP = _FRAMING | {"connection", "keep-alive", "te", "trailer", "upgrade", "http2-settings"}
_WITHOUT_BODY = frozenset({"GET", "HEAD", "TRACE"})

Headers = list[tuple[str, str]]
"""Names in lower case, in their order."""


class MalformedRequest(Exception):
    """Not a request of the three kinds, or an ambiguous one. `reply` is the response in SOCKS, if it was SOCKS."""

    def __init__(self, problem: str, *, reply: bytes | None = None) -> None:
        super().__init__(problem)
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRequest:
    """`head` is sent to the server first; `body` says how many of the client's bytes belong to the request: a number,
    "chunked", or None for a tunnel without end."""

    protocol: str
    host: str
    port: int
    method: str = TUNNEL
    head: bytes = b""
    body: int | str | None = None


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ProxyRequest:
    """Raises MalformedRequest, or EOFError where the client disconnects."""
    first = await reader.readexactly(1)
    if first == b"\x05":
        return await _read_socks(reader, writer)
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise MalformedRequest("the request head is too large") from None
    return parse_head(head)


def parse_head(head: bytes) -> ProxyRequest:
    line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    request = _LINE.fullmatch(line)
    if request is None:
        raise MalformedRequest("not an HTTP request to a proxy")
    method, target, version = request.groups()
    headers = _headers(fields)
    body = _framing(headers, version)
    try:
        return _tunnel(target, body) if method == TUNNEL else _plain(line, target, headers, body)
    except ToolError as refusal:
        raise MalformedRequest(refusal.message) from None


def _tunnel(authority: str, body: int | str) -> ProxyRequest:
    host, colon, port = authority.rpartition(":")
    if not colon:
        raise MalformedRequest("CONNECT needs a host and a port")
    if body:
        raise MalformedRequest("CONNECT has no body: the bytes after it are the tunnel")
    return ProxyRequest(protocol="connect", host=parse_host(host)[0], port=parse_port(port, "https"))


def _plain(line: str, url: str, headers: Headers, body: int | str) -> ProxyRequest:
    method, _, version = line.split(" ")
    if not url.lower().startswith("http://"):
        raise MalformedRequest("the proxy takes http:// URLs; use CONNECT for https://")
    if body and method in _WITHOUT_BODY:
        raise MalformedRequest(f"{method} with a body is refused: servers disagree about where it ends")
    target = parse_url(url)
    dropped = _HOP_BY_HOP | _named_by_connection(headers)
    kept = [f"{name}: {value}" for name, value in headers if name not in dropped and not name.startswith("proxy-")]
    start = f"{method} {target.path} {version}"
    lines = [start, f"host: {target.authority}", *kept, *_framing_lines(headers, body), "connection: close"]
    head = "\r\n".join((*lines, "", "")).encode("latin-1")
    return ProxyRequest(protocol="http", host=target.host, port=target.port, method=method, head=head, body=body)


def _headers(fields: list[str]) -> Headers:
    headers = []
    for field in fields:
        found = _FIELD.fullmatch(field)
        if found is None:
            raise MalformedRequest(f"not a header: {field[:80]!r}")
        name = found[1].lower()
        if name not in _FRAMING and name.replace("_", "-") in _FRAMING:
            raise MalformedRequest(f"some servers read the header {name!r} as {name.replace('_', '-')!r}")
        headers.append((name, found[2].strip(" \t")))
    return headers


def _values(headers: Headers, name: str) -> list[str]:
    return [value for each, value in headers if each == name]


def _named_by_connection(headers: Headers) -> frozenset[str]:
    """Headers that the client limits to its connection with us."""
    listed = ",".join(_values(headers, "connection"))
    named = frozenset(part.strip(" \t").lower() for part in listed.split(","))
    if wrong := named & (_FRAMING | {"expect"}):
        raise MalformedRequest(f"the header {min(wrong)!r} cannot be named in Connection: it belongs to the request")
    return named


def _framing(headers: Headers, version: str) -> int | str:
    """The length of the body, or "chunked"."""
    if len(_values(headers, "host")) > 1:
        raise MalformedRequest("the request has more than one Host")
    expected = [value.lower() for value in _values(headers, "expect")]
    if expected not in ([], ["100-continue"]):
        raise MalformedRequest("Expect other than 100-continue is not supported")
    lengths = _values(headers, "content-length")
    codings = [value.lower() for value in _values(headers, "transfer-encoding")]
    if codings:
        if lengths or codings != ["chunked"] or version == "HTTP/1.0":
            raise MalformedRequest("the length of the request body is ambiguous")
        return "chunked"
    if not lengths:
        return 0
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or len(lengths[0]) > 15:
        raise MalformedRequest("the length of the request body is ambiguous")
    return int(lengths[0])


def _framing_lines(headers: Headers, body: int | str) -> list[str]:
    if body == "chunked":
        return ["transfer-encoding: chunked"]
    return [f"content-length: {body}"] if _values(headers, "content-length") else []


async def _read_socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ProxyRequest:
    """SOCKS 5 without authentication; the name is resolved by us."""
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    if 0 not in methods:
        raise MalformedRequest("the SOCKS client requires authentication", reply=b"\x05\xff")
    writer.write(b"\x05\x00")
    version, command, _, kind = await reader.readexactly(4)
    if version != 5 or command != 1:
        raise MalformedRequest("only the SOCKS command CONNECT is supported", reply=socks_reply(7))
    host = await _read_socks_host(reader, kind)
    (port,) = struct.unpack("!H", await reader.readexactly(2))
    try:
        return ProxyRequest(protocol="socks5", host=parse_host(host)[0], port=parse_port(str(port), "https"))
    except ToolError as refusal:
        raise MalformedRequest(refusal.message, reply=socks_reply(2)) from None


async def _read_socks_host(reader: asyncio.StreamReader, kind: int) -> str:
    if kind == 1:
        return socket.inet_ntop(socket.AF_INET, await reader.readexactly(4))
    if kind == 4:
        return f"[{socket.inet_ntop(socket.AF_INET6, await reader.readexactly(16))}]"
    if kind == 3:
        return (await reader.readexactly((await reader.readexactly(1))[0])).decode("latin-1")
    raise MalformedRequest(f"unknown SOCKS address type {kind}", reply=socks_reply(8))


def socks_reply(code: int) -> bytes:
    return bytes((5, code, 0, 1)) + bytes(6)
