"""Mail as Gmail returns it: headers, the readable body, and the attachments.

Total: a message that is malformed gives what can be read of it and says what cannot. The walk is bounded in depth and
parts, and a body is decoded piece by piece.
"""

import binascii
import codecs
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any

from toolreeve.connectors.api import objects
from toolreeve.tools.html import MAX_INPUT, html_to_text

MAX_DEPTH = 30
MAX_PARTS = 500
MAX_HEADER = 8192
"""Characters of a header or a file name; decoding takes quadratic time."""
_PIECE = 1 << 20  # characters; a multiple of four
_LARGE_BODY = re.compile(rb'"data"\s*:\s*"([A-Za-z0-9_=-]{65536,})"')
_LIFTED = "#"
"""Marks a lifted body by its number; no base64 has it."""
LiftedBody = tuple[bytearray, bool]
_STANDARD = bytes.maketrans(b"-_", b"+/")
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined"})
"""Codecs of Python that no mail is written in; some take quadratic time."""


@dataclass(slots=True)
class ParsedMail:
    """`html` is whether the body was HTML. `problems` says what could not be read."""

    body: str = ""
    html: bool = False
    attachments: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def parse_mail(payload: Mapping[str, Any], lifted: list[LiftedBody] | None = None, *, raw: bool = False) -> ParsedMail:
    """The body as text, or unchanged with `raw`. `lifted` is from `lift_bodies`; it is emptied."""
    mail = ParsedMail()
    walk = _Walk(mail, lifted or (), raw=raw)
    if lifted:
        lifted.clear()
    texts = list(walk.texts(payload, 0))
    mail.body = "\n\n".join(filter(None, texts))
    return mail


def get_header(payload: Mapping[str, Any], name: str) -> str:
    """The first header of that name, in whatever case; decoded, on one line. Empty if there is none."""
    wanted = name.lower()
    for each in objects(payload, "headers"):
        if str(each.get("name", "")).lower() == wanted:
            return decode_words(str(each.get("value", "")))
    return ""


def decode_words(value: str) -> str:
    """RFC 2047: `=?utf-8?q?caf=C3=A9?=` as café. What cannot be decoded stays as it is."""
    flat = " ".join(value[:MAX_HEADER].split())
    if "=?" not in flat:
        return flat
    try:
        return " ".join(str(make_header(decode_header(flat))).split())
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return flat


class _Walk:
    def __init__(self, mail: ParsedMail, lifted: Sequence[LiftedBody], *, raw: bool) -> None:
        self._mail = mail
        self._lifted = dict(enumerate(lifted))
        self._is_raw = raw
        self._count = 0

    def texts(self, part: Mapping[str, Any], depth: int) -> Iterator[str]:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_PARTS:
            if "the rest of its parts is left out" not in self._mail.problems:
                self._mail.problems.append("the rest of its parts is left out")
            return
        kind = str(part.get("mimeType", "")).lower()
        inner = objects(part, "parts")
        if _is_attachment(part):
            self._attach(part, kind)
        elif kind == "multipart/alternative":
            yield from self._best(inner, depth)
        elif inner:
            for each in inner:
                yield from self.texts(each, depth + 1)
        elif kind in ("text/html", "text/plain") or not kind or kind.startswith("text/"):
            yield self._text(part, kind)
        elif kind and not kind.startswith("multipart/"):
            self._attach(part, kind)

    def _best(self, parts: list[Mapping[str, Any]], depth: int) -> Iterator[str]:
        """HTML before plain text, a nested multipart before both if it holds HTML; the others only if those are
        empty."""
        for part in sorted(parts, key=_preference):
            found = [text for text in self.texts(part, depth + 1) if text.strip()]
            if found:
                yield from found
                return

    def _text(self, part: Mapping[str, Any], kind: str) -> str:
        text = self._decode(part)
        if kind != "text/html":
            return text.replace("\r\n", "\n").strip("\n")
        self._mail.html = True
        if self._is_raw:
            return text
        if len(text) > MAX_INPUT:
            shown, size = MAX_INPUT >> 20, len(text) / (1 << 20)
            self._mail.problems.append(f"only the first {shown} of {size:.1f} MB of HTML are shown; format raw has all")
        return html_to_text(text, visible_only=True)

    def _decode(self, part: Mapping[str, Any]) -> str:
        body = part.get("body")
        data = body.get("data") if isinstance(body, Mapping) else None
        if not isinstance(data, str) or not data:
            return ""
        decoded, is_whole = self._decoded(data)
        if not is_whole:
            self._mail.problems.append(f"the base64 of a {part.get('mimeType', 'text')} part is malformed")
        return decode_charset(decoded, charset_of(part))

    def _decoded(self, data: str) -> LiftedBody:
        number = data.removeprefix(_LIFTED)
        if number == data:
            return decode_base64url(data.encode("ascii", "replace"))
        return self._lifted.pop(int(number), (bytearray(), False)) if number.isdecimal() else (bytearray(), False)

    def _attach(self, part: Mapping[str, Any], kind: str) -> None:
        body = part.get("body")
        size = body.get("size") if isinstance(body, Mapping) else None
        name = decode_words(str(part.get("filename") or ""))
        self._mail.attachments.append(
            {"filename": name, "mimeType": kind, "size": size if isinstance(size, int) else 0}
        )


def decode_base64url(data: bytes | bytearray | memoryview) -> tuple[bytearray, bool]:
    """The bytes, and whether all of them could be decoded. Padding may be missing."""
    whole = bytearray()
    rest = b""
    for start in range(0, len(data), _PIECE):
        piece = rest + bytes(data[start : start + _PIECE]).translate(_STANDARD, b"= \r\n\t")
        cut = len(piece) - len(piece) % 4
        rest = piece[cut:]
        try:
            whole += binascii.a2b_base64(piece[:cut], strict_mode=True)
        except binascii.Error:
            return whole, False
    if not rest:
        return whole, True
    try:
        whole += binascii.a2b_base64(rest + b"=" * (4 - len(rest)), strict_mode=False)
    except binascii.Error:
        return whole, False
    return whole, True


def lift_bodies(response: bytearray) -> tuple[bytes, list[LiftedBody]]:
    """The response without its large bodies, and these decoded; the response itself is emptied. A JSON parser would
    copy them twice."""
    spans = [found.span(1) for found in _LARGE_BODY.finditer(response)]
    kept: list[bytes] = []
    lifted: list[LiftedBody] = []
    place = 0
    with memoryview(response) as view:
        for start, end in spans:
            kept += (bytes(view[place:start]), f"{_LIFTED}{len(lifted)}".encode())
            lifted.append(decode_base64url(view[start:end]))
            place = end
        kept.append(bytes(view[place:]))
    response.clear()
    return b"".join(kept), lifted


def charset_of(part: Mapping[str, Any]) -> str:
    content_type = get_header(part, "content-type")
    for parameter in content_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'").lower()
    return ""


def decode_charset(data: bytes | bytearray, charset: str) -> str:
    """Gmail sends most bodies as UTF-8, whatever their header says: what is valid UTF-8 and not plain ASCII is."""
    if not data.isascii() or charset in ("", "utf-8", "us-ascii"):
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    try:
        codec = codecs.lookup(charset or "utf-8")
        if codec._is_text_encoding and codec.name not in _NO_CHARSETS:
            return data.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError, UnicodeError):
        pass
    return data.decode("utf-8", "replace")


def _is_attachment(part: Mapping[str, Any]) -> bool:
    if part.get("filename"):
        return True
    return get_header(part, "content-disposition").lower().startswith("attachment")


def _preference(part: Mapping[str, Any]) -> int:
    kind = str(part.get("mimeType", "")).lower()
    if kind == "text/html":
        return 0
    return 1 if kind.startswith("multipart/") else 2
