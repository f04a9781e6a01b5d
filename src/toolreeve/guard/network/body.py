"""Response bodies: decompressed piece by piece and cut at the cap.

No piece is larger than `PIECE` and no window larger than the web's own limit, so that a small response which unpacks to
gigabytes costs no more memory than an honest one.
"""

import re
import sys
import zlib
from collections.abc import AsyncIterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Protocol

from toolreeve.core.charset import is_text
from toolreeve.core.errors import ErrorCode, ToolError

PIECE = 256 * 1024
MAX_CODINGS = 2
# RFC 9659: a zstd window beyond 8 MB is not for the web.
ZSTD_WINDOW_LOG = 23
_WIDE = re.compile(rb"[\xc4-\xef]")
_VERY_WIDE = re.compile(rb"[\xf0-\xff]")
_ZSTD_PACKAGE = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


class Decoder(Protocol):
    def feed(self, data: bytes) -> Iterator[bytes]: ...


async def read_body(stream: AsyncIterable[bytes], headers: Mapping[str, str], *, cap: int) -> tuple[bytearray, bool]:
    """The body up to `cap` bytes, and whether there was more. Raises ToolError(HTTP_ERROR) if decoding fails."""
    decoders = decoders_for(headers.get("content-encoding", ""))
    body = bytearray()
    async for chunk in stream:
        for piece in _decode(decoders, chunk):
            body += piece
            if len(body) > cap:
                _cut(body, cap, headers.get("content-type", ""))
                return body, True
    return body, False


def _cut(body: bytearray, cap: int, content_type: str) -> None:
    """Cut to the cap; text further if it has characters for which Python keeps two or four bytes each: one of them
    makes the whole string as wide."""
    del body[cap:]
    if not is_text(body, content_type):
        return
    if _VERY_WIDE.search(body):
        del body[int(cap * 0.35) :]
    elif _WIDE.search(body):
        del body[int(cap * 0.6) :]


def decoders_for(content_encoding: str) -> list[Decoder]:
    """The decoders to apply, in order. An unknown coding is left alone, as browsers do."""
    codings = [coding.strip().lower() for coding in content_encoding.split(",")]
    known = [coding for coding in codings if coding in _DECODERS]
    if len(known) > MAX_CODINGS:
        raise ToolError(
            ErrorCode.HTTP_ERROR, f"the response is compressed {len(known)} times; at most {MAX_CODINGS} are decoded"
        )
    return [_decoder(coding) for coding in reversed(known)]


def _decoder(coding: str) -> Decoder:
    try:
        return _DECODERS[coding]()
    except ImportError as problem:
        message = f"the response is compressed as {coding!r}, which needs the package {problem.name}"
        raise ToolError(ErrorCode.HTTP_ERROR, message, suggestions=("pip install 'toolreeve[http]'",)) from None


def _decode(decoders: list[Decoder], chunk: bytes) -> Iterator[bytes]:
    if not decoders:
        yield chunk
        return
    first, *rest = decoders
    try:
        for piece in first.feed(chunk):
            yield from _decode(rest, piece)
    except (ValueError, EOFError, zlib.error) as problem:
        raise ToolError(ErrorCode.HTTP_ERROR, f"the response cannot be decompressed: {problem}") from None


class _Gzip:
    """Gzip, zlib, and the raw deflate that some servers send as "deflate"; gzip may have several members."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
            try:
                piece = self._inflate.decompress(data, PIECE)
            except zlib.error:
                if self._begun:
                    raise
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
                piece = self._inflate.decompress(data, PIECE)
            self._begun = True
            yield piece
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
            if self._inflate.eof and not data.startswith(b"\x1f\x8b"):
                return


class _Brotli:
    def __init__(self) -> None:
        import brotli

        self._error = brotli.error
        self._decompressor = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            yield self._decompressor.process(data, output_buffer_limit=PIECE)
            while not self._decompressor.can_accept_more_data():
                yield self._decompressor.process(b"", output_buffer_limit=PIECE)
        except self._error as problem:
            raise ValueError(problem) from None


class _Zstd:
    def __init__(self) -> None:
        self._library: Any = _zstd()
        self._decompressor = self._new()

    def _new(self) -> Any:
        limit = {self._library.DecompressionParameter.window_log_max: ZSTD_WINDOW_LOG}
        return self._library.ZstdDecompressor(options=limit)

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while True:
                if self._decompressor.eof:
                    self._decompressor = self._new()
                yield self._decompressor.decompress(data, PIECE)
                if self._decompressor.eof:
                    data = self._decompressor.unused_data
                    if not data:
                        return
                elif self._decompressor.needs_input:
                    return
                else:
                    data = b""
        except self._library.ZstdError as problem:
            raise ValueError(problem) from None


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


_DECODERS: Mapping[str, type[_Gzip] | type[_Brotli] | type[_Zstd]] = {
    "gzip": _Gzip,
    "x-gzip": _Gzip,
    "deflate": _Gzip,
    "br": _Brotli,
    "zstd": _Zstd,
}


def _has(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent package is missing
        return False


_OPTIONAL_CODINGS = {"br": "brotli", "zstd": _ZSTD_PACKAGE}
ACCEPT_ENCODING = ", ".join(
    ("gzip", "deflate", *(coding for coding, package in _OPTIONAL_CODINGS.items() if _has(package)))
)
