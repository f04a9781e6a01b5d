"""Output capture keeps the beginning and the end of a stream, and no more memory than its limit."""

import asyncio
import gc
import os
import tracemalloc
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.sandbox.capture import Capture
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

MEGABYTE = 1 << 20


async def _capture(pieces: list[bytes], limit: int) -> tuple[bytes, bool]:
    ended = asyncio.Event()
    capture = Capture("stdout", limit, asyncio.get_running_loop(), None)
    writing = capture.start(ended.set)
    for piece in pieces:
        os.write(writing, piece)
        await asyncio.sleep(0)
    os.close(writing)
    await ended.wait()
    return capture.take(), capture.truncated


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(2, 60))
def test_what_does_not_fit_is_cut_in_the_middle_and_counted(pieces: list[bytes], limit: int) -> None:
    everything = b"".join(pieces)
    room = limit // 2

    kept, truncated = asyncio.run(_capture(pieces, limit))

    if len(everything) <= 2 * room:
        assert (kept, truncated) == (everything, False)
    else:
        mark = b"\n[... %d bytes of stdout were not kept ...]\n" % (len(everything) - 2 * room)
        assert (kept, truncated) == (everything[:room] + mark + everything[-room:], True)


async def test_a_flood_of_output_takes_no_more_memory_than_its_limit_and_leaves_none(tmp_path: Path) -> None:
    sandbox = Sandbox(Layout(workspace=str(tmp_path)), Strictness())
    request = ProcessRequest(
        argv=("bash", "-c", "head -c 30000000 /dev/zero; head -c 30000000 /dev/zero >&2"),
        directory=str(tmp_path),
        limits=ProcessLimits(output_kb=4096),
    )
    await sandbox.run(request)
    gc.disable()
    tracemalloc.start()
    try:
        ended = await sandbox.run(request)
        sizes = len(ended.stdout), len(ended.stderr)
        peak = tracemalloc.get_traced_memory()[1]
        del ended
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
        await sandbox.close()

    assert all(4 * MEGABYTE < size < 4 * MEGABYTE + 100 for size in sizes)
    assert peak < 17 * MEGABYTE  # both streams, and a copy of one while the result is put together
    assert left < MEGABYTE
