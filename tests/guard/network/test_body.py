import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.guard.network.body import PIECE, _zstd, decoders_for, read_body

zstd: Any = _zstd()
MB = 1024 * 1024


def raw_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(data) + squeeze.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", lambda data: brotli.compress(data, quality=3)),
    "zstd": ("zstd", zstd.compress),
    "gzip in members": ("gzip", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])),
    "zstd in frames": ("zstd", lambda data: zstd.compress(data[:5]) + zstd.compress(data[5:])),
    "twice": ("gzip, br", lambda data: brotli.compress(gzip.compress(data), quality=3)),
}


async def pieces(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def read(data: bytes, coding: str, *, cap: int) -> tuple[bytes, bool]:
    body, truncated = await read_body(pieces(data), {"content-encoding": coding}, cap=cap)
    return bytes(body), truncated


@pytest.mark.parametrize("name", sorted(PACKERS))
async def test_each_coding_is_undone(name: str) -> None:
    coding, pack = PACKERS[name]
    text = b"toolreeve " * 5000

    assert await read(pack(text), coding, cap=MB) == (text, False)


@pytest.mark.parametrize("name", sorted(PACKERS))
async def test_a_bomb_is_cut_at_the_cap_and_unpacked_no_further(name: str) -> None:
    coding, pack = PACKERS[name]
    bomb = pack(bytes(50 * MB))

    body, truncated = await read_body(pieces(bomb, 65536), {"content-encoding": coding}, cap=MB)

    assert (len(body), truncated) == (MB, True)


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_no_piece_is_much_larger_than_the_limit(coding: str) -> None:
    bomb = PACKERS[coding][1](bytes(20 * MB))

    assert max(map(len, decoders_for(coding)[0].feed(bomb))) <= 4 * PIECE


async def test_a_zstd_window_beyond_the_webs_limit_is_refused() -> None:
    parameters = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.content_size_flag: 0}
    squeeze = zstd.ZstdCompressor(options=parameters)
    packed = squeeze.compress(bytes(1000)) + squeeze.flush()

    with pytest.raises(ToolError) as caught:
        await read_body(pieces(packed), {"content-encoding": "zstd"}, cap=MB)

    assert caught.value.code is ErrorCode.HTTP_ERROR


async def test_too_many_codings_are_refused_and_unknown_ones_left_alone() -> None:
    with pytest.raises(ToolError):
        decoders_for("gzip, gzip, gzip")
    assert await read(b"plain", "aws-chunked, identity", cap=9) == (b"plain", False)


async def test_exactly_the_cap_is_not_truncated() -> None:
    assert await read(b"x" * 10, "", cap=10) == (b"x" * 10, False)
    assert await read(b"x" * 11, "", cap=10) == (b"x" * 10, True)


@settings(max_examples=100)
@given(st.binary(max_size=300), st.sampled_from(["gzip", "deflate", "br", "zstd", "zstd, gzip"]))
async def test_any_bytes_are_decoded_or_refused(data: bytes, coding: str) -> None:
    with suppress(ToolError):
        body, _ = await read_body(pieces(data, 7), {"content-encoding": coding}, cap=1000)
        assert len(body) <= 1000
