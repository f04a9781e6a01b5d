"""Requests to the proxy: SOCKS5, CONNECT, or one plain HTTP request.

Exactly one request is read from a connection, with one meaning: what two parsers could frame differently is refused.
Host, framing and connection headers are never copied from the client: they are written anew from what was judged.
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
"""Names in lower case, in the order in which they came."""


class MalformedRequest(Exception):
    """The client speaks none of the three, or does so ambiguously. `reply` is the answer in SOCKS, if it spoke that."""

    def __init__(self, problem: str, *, reply: bytes | None = None) -> None:
        super().__init__(problem)
        self.reply = reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """`head` is what the other side is sent first; `body` says how much of the client's bytes belongs to the request:
    a number, "chunked", or None for a tunnel without end."""

    protocol: str
    host: str
    port: int
    method: str = TUNNEL
    head: bytes = b""
    body: int | str | None = None


async def read_wanted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Wanted:
    """Raises Malformed, or EOFError where the client goes away."""
    first = await reader.readexactly(1)
    if first == b"\x05":
        return await _read_socks(reader, writer)
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise MalformedRequest("the request's head is too large") from None
    return parse_head(head)


def parse_head(head: bytes) -> Wanted:
    line, *fields = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    request = _LINE.fullmatch(line)
    if request is None:
        raise MalformedRequest("this is not an HTTP request to a proxy")
    method, place, version = request.groups()
    headers = _headers(fields)
    body = _framing(headers, version)
    try:
        return _tunnel(place, body) if method == TUNNEL else _plain(line, place, headers, body)
    except ToolError as refusal:
        raise MalformedRequest(refusal.message) from None


def _tunnel(place: str, body: int | str) -> Wanted:
    host, colon, port = place.rpartition(":")
    if not colon:
        raise MalformedRequest("CONNECT needs a host and a port")
    if body:
        raise MalformedRequest("CONNECT has no body: what follows it is the tunnel")
    return Wanted(protocol="connect", host=parse_host(host)[0], port=parse_port(port, "https"))


def _plain(line: str, url: str, headers: Headers, body: int | str) -> Wanted:
    method, _, version = line.split(" ")
    if not url.lower().startswith("http://"):
        raise MalformedRequest("a proxy takes http:// URLs; use CONNECT for https://")
    if body and method in _WITHOUT_BODY:
        raise MalformedRequest(f"{method} with a body is refused: servers disagree about where it ends")
    target = parse_url(url)
    dropped = _HOP_BY_HOP | _named_by_connection(headers)
    kept = [f"{name}: {value}" for name, value in headers if name not in dropped and not name.startswith("proxy-")]
    start = f"{method} {target.path} {version}"
    lines = [start, f"host: {target.authority}", *kept, *_framing_lines(headers, body), "connection: close"]
    head = "\r\n".join((*lines, "", "")).encode("latin-1")
    return Wanted(protocol="http", host=target.host, port=target.port, method=method, head=head, body=body)


def _headers(fields: list[str]) -> Headers:
    headers = []
    for field in fields:
        found = _FIELD.fullmatch(field)
        if found is None:
            raise MalformedRequest(f"this is not a header: {field[:80]!r}")
        name = found[1].lower()
        if name not in _FRAMING and name.replace("_", "-") in _FRAMING:
            raise MalformedRequest(f"some servers read the header {name!r} as {name.replace('_', '-')!r}")
        headers.append((name, found[2].strip(" \t")))
    return headers


def _values(headers: Headers, name: str) -> list[str]:
    return [value for each, value in headers if each == name]


def _named_by_connection(headers: Headers) -> frozenset[str]:
    """What the client says concerns only its connection to us."""
    listed = ",".join(_values(headers, "connection"))
    named = frozenset(part.strip(" \t").lower() for part in listed.split(","))
    if wrong := named & (_FRAMING | {"expect"}):
        raise MalformedRequest(f"the header {min(wrong)!r} cannot be named in Connection: it belongs to the request")
    return named


def _framing(headers: Headers, version: str) -> int | str:
    """How the body ends: after so many bytes, or "chunked"."""
    if len(_values(headers, "host")) > 1:
        raise MalformedRequest("the request has more than one Host")
    expected = [value.lower() for value in _values(headers, "expect")]
    if expected not in ([], ["100-continue"]):
        raise MalformedRequest("the only thing to Expect is 100-continue")
    lengths = _values(headers, "content-length")
    codings = [value.lower() for value in _values(headers, "transfer-encoding")]
    if codings:
        if lengths or codings != ["chunked"] or version == "HTTP/1.0":
            raise MalformedRequest("the length of the request's body is ambiguous")
        return "chunked"
    if not lengths:
        return 0
    if len(lengths) > 1 or not (lengths[0].isascii() and lengths[0].isdigit()) or len(lengths[0]) > 15:
        raise MalformedRequest("the length of the request's body is ambiguous")
    return int(lengths[0])


def _framing_lines(headers: Headers, body: int | str) -> list[str]:
    if body == "chunked":
        return ["transfer-encoding: chunked"]
    return [f"content-length: {body}"] if _values(headers, "content-length") else []


async def _read_socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Wanted:
    """SOCKS 5 without authentication; the name is resolved on this side."""
    methods = await reader.readexactly((await reader.readexactly(1))[0])
    if 0 not in methods:
        raise MalformedRequest("the SOCKS client insists on authentication", reply=b"\x05\xff")
    writer.write(b"\x05\x00")
    version, command, _, kind = await reader.readexactly(4)
    if version != 5 or command != 1:
        raise MalformedRequest("only the SOCKS command CONNECT is supported", reply=socks_reply(7))
    host = await _read_socks_host(reader, kind)
    (port,) = struct.unpack("!H", await reader.readexactly(2))
    try:
        return Wanted(protocol="socks5", host=parse_host(host)[0], port=parse_port(str(port), "https"))
    except ToolError as refusal:
        raise MalformedRequest(refusal.message, reply=socks_reply(2)) from None


async def _read_socks_host(reader: asyncio.StreamReader, kind: int) -> str:
    if kind == 1:
        return socket.inet_ntop(socket.AF_INET, await reader.readexactly(4))
    if kind == 4:
        return f"[{socket.inet_ntop(socket.AF_INET6, await reader.readexactly(16))}]"
    if kind == 3:
        return (await reader.readexactly((await reader.readexactly(1))[0])).decode("latin-1")
    raise MalformedRequest(f"the SOCKS address type {kind} is not known", reply=socks_reply(8))


def socks_reply(code: int) -> bytes:
    return bytes((5, code, 0, 1)) + bytes(6)
