"""Text paging: pages of lines, in bounded memory.

A page ends at the end of a line if possible; a line longer than a page is cut between characters and continued by byte.
Every cut is reported with the position where the text continues.
"""

import codecs
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from toolreeve.core.errors import ErrorCode, ToolError

PAGE_BYTES = 256 * 1024
COUNTED_BYTES = 16 * 1024 * 1024
WIDE_BYTES = 4 * 1024 * 1024
SCAN_SECONDS = 10.0
_PIECE = 4 * 1024 * 1024
_BOM = codecs.BOM_UTF8
# Decoding these takes more than linear time, or gives no text.
_REFUSED = frozenset({"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"})


class Source(Protocol):
    """Bytes with random access."""

    @property
    def size(self) -> int: ...
    def read(self, offset: int, limit: int) -> bytes: ...


class Memory:
    """Bytes in memory as a source."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, limit: int) -> bytes:
        return self._data[offset : offset + limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """`by_bytes`: a newline is always the byte 10 and that byte always a newline, so lines can be found undecoded."""

    name: str
    by_bytes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """`lines` counts the whole text, None if it is too large to count. `next_line` and `next_byte` say where the text
    continues, if it does; with `next_line` it continues at the start of a line."""

    text: str
    encoding: str
    lines: int | None
    next_line: int | None = None
    next_byte: int | None = None


@lru_cache(maxsize=64)
def find_encoding(name: str) -> Encoding:
    """Raises ToolError(INVALID_PARAMS) for an unknown text encoding."""
    try:
        canonical = codecs.lookup(name).name
        if canonical.replace("-", "_") in _REFUSED:
            raise LookupError
        by_bytes = "a\nb".encode(canonical) == b"a\nb" and b"\n".decode(canonical) == "\n"
    except (LookupError, ValueError):
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/encoding: {name[:80]!r} is not a known text encoding") from None
    return Encoding(name=canonical, by_bytes=by_bytes)


def decode(data: bytes, encoding: str, path: str) -> tuple[str, str]:
    """The text and the name of its encoding; a UTF-8 byte order mark is not part of the text."""
    try:
        if data.startswith(_BOM) and encoding in ("utf-8", "utf-8-sig"):
            return data[3:].decode(), "utf-8-sig"
        return data.decode(encoding), encoding
    except UnicodeDecodeError as problem:
        raise undecodable(data, problem, encoding, path) from None


def undecodable(data: bytes, problem: UnicodeDecodeError, encoding: str, path: str) -> ToolError:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        hint = "it looks like UTF-16: pass encoding='utf-16'"
    elif b"\0" in data[:8192]:
        hint = "it looks like a binary file"
    else:
        hint = "it may be binary, or in another encoding such as 'latin-1'"
    where = f"byte {problem.object[problem.start]:#04x} at position {problem.start}"
    return ToolError(ErrorCode.READ_ERROR, f"{path} is not {encoding} text ({where}); {hint}", retryable=False)


def count_lines(text: str) -> int:
    return text.count("\n") + (bool(text) and text[-1] != "\n")


def read_page(
    source: Source, path: str, encoding: Encoding, *, line: int = 1, count: int | None = None, byte: int | None = None
) -> Page:
    """Up to `count` lines from `line` on, or from a byte on, as far as they fit."""
    if encoding.by_bytes:
        return _read_bytewise(source, path, encoding.name, line=line, count=count, byte=byte)
    if source.size > WIDE_BYTES:
        raise ToolError(
            ErrorCode.READ_ERROR,
            f"{path}: text in {encoding.name} can be shown up to {WIDE_BYTES // 1024 // 1024} MB; convert it to UTF-8",
            retryable=False,
        )
    text, _ = decode(source.read(0, source.size), encoding.name, path)
    page = _read_bytewise(Memory(text.encode()), path, "utf-8", line=line, count=count, byte=byte)
    return Page(
        text=page.text, encoding=encoding.name, lines=page.lines, next_line=page.next_line, next_byte=page.next_byte
    )


def _read_bytewise(source: Source, path: str, encoding: str, *, line: int, count: int | None, byte: int | None) -> Page:
    start = find_line(source, line) if byte is None else byte
    if start > source.size:
        raise _beyond(f"byte {start}", f"{source.size} bytes")
    data = source.read(start, PAGE_BYTES)
    reaches_end = start + len(data) >= source.size
    end = _end_of_lines(data, count, whole=reaches_end)
    at_line_end = end == 0 or data[end - 1 : end] == b"\n" or (reaches_end and end == len(data))
    if byte is not None and encoding == "utf-8":
        skipped = next((at for at, each in enumerate(data[:4]) if each & 0xC0 != 0x80), 0)
        data = data[skipped:]
        end -= skipped
        start += skipped
    text, used, name = _decode_part(data[:end], encoding, path, first=start == 0, final=at_line_end)
    following = start + used
    lines = _count_all(source)
    if following >= source.size:
        return Page(text=text, encoding=name, lines=lines)
    if byte is None and at_line_end:
        return Page(text=text, encoding=name, lines=lines, next_line=line + text.count("\n"), next_byte=following)
    return Page(text=text, encoding=name, lines=lines, next_byte=following)


def _end_of_lines(data: bytes, count: int | None, *, whole: bool) -> int:
    """Where to cut: after `count` lines if they are all here, else after the last whole line, else at the end."""
    if count is not None and data.count(b"\n") >= count:
        return _after_newlines(data, count)
    if whole:
        return len(data)
    return data.rfind(b"\n") + 1 or len(data)


def _decode_part(data: bytes, encoding: str, path: str, *, first: bool, final: bool) -> tuple[str, int, str]:
    """The text, how many bytes it took, and the encoding. A character cut at the end is left for the next page."""
    marked = first and encoding in ("utf-8", "utf-8-sig") and data.startswith(_BOM)
    decoder = codecs.getincrementaldecoder("utf-8" if marked or encoding == "utf-8-sig" else encoding)()
    try:
        text = decoder.decode(data[3:] if marked else data, final)
    except UnicodeDecodeError as problem:
        raise undecodable(data, problem, encoding, path) from None
    return text, len(data) - len(decoder.getstate()[0]), "utf-8-sig" if marked else encoding


def find_line(source: Source, line: int) -> int:
    """The byte at which a line begins, lines counted from one. Gives up after `SCAN_SECONDS`."""
    wanted = line - 1
    offset = 0
    ends = time.monotonic() + SCAN_SECONDS
    while wanted > 0:
        piece = source.read(offset, _PIECE)
        if not piece:
            raise _beyond(f"line {line}", f"{line - 1 - wanted + _has_unterminated(source)} lines")
        here = piece.count(b"\n")
        if here >= wanted:
            return offset + _after_newlines(piece, wanted)
        wanted -= here
        offset += len(piece)
        if time.monotonic() > ends:
            raise ToolError(
                ErrorCode.LIMIT,
                f"line {line} was not reached within {SCAN_SECONDS:g} s ({offset} bytes); give byte={offset} instead",
            )
    return offset


def _after_newlines(data: bytes, count: int) -> int:
    """The position after the `count`-th newline, which must exist."""
    low = 0
    high = len(data)
    while high - low > 4096:
        middle = (low + high) // 2
        here = data.count(b"\n", low, middle)
        if here >= count:
            high = middle
        else:
            count -= here
            low = middle
    for _ in range(count):
        low = data.index(b"\n", low) + 1
    return low


def _count_all(source: Source) -> int | None:
    if source.size > COUNTED_BYTES:
        return None
    total = offset = 0
    while piece := source.read(offset, _PIECE):
        total += piece.count(b"\n")
        offset += len(piece)
    return total + _has_unterminated(source)


def _has_unterminated(source: Source) -> int:
    """1 if the last line lacks its newline, because it is still a line."""
    return int(source.size > 0 and source.read(source.size - 1, 1) != b"\n")


def _beyond(what: str, has: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PARAMS, f"/offset: {what} is beyond the end: the file has {has}")
