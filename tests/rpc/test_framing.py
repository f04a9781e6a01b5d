"""Newline framing over pipes, in any pieces."""

import asyncio
import contextlib
import os
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.rpc.framing import FrameReader, FrameWriter, LineSplitter, NotWritable


class Heard:
    """What came out of a pipe."""

    def __init__(self, limit: int = 1 << 20) -> None:
        reading, self.writing = os.pipe()
        self.messages: list[Any] = []
        self.strays: list[bytes] = []
        self.closed: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        os.set_blocking(reading, False)
        self.reader = FrameReader(reading, self.messages.append, self.strays.append, self.closed.set_result, limit)

    async def all(self) -> None:
        os.close(self.writing)
        await asyncio.wait_for(self.closed, 5)


texts = st.lists(
    st.one_of(
        st.builds(lambda value: orjson.dumps({"value": value}), st.text(max_size=30) | st.integers(0, 9)),
        st.binary(max_size=10).map(lambda data: b"!" + data.replace(b"\n", b"")),
        st.just(b""),
    ),
    max_size=8,
)


@given(lines=texts, cuts=st.lists(st.integers(1, 12), min_size=1, max_size=20))
def test_lines_are_read_whole_in_any_pieces(lines: list[bytes], cuts: list[int]) -> None:
    async def hear() -> Heard:
        heard, data, turn = Heard(), b"".join(line + b"\n" for line in lines), 0
        while data:
            cut = cuts[turn % len(cuts)]
            os.write(heard.writing, data[:cut])
            data, turn = data[cut:], turn + 1
            await asyncio.sleep(0)
        await heard.all()
        return heard

    heard = asyncio.run(hear())

    assert heard.messages == [orjson.loads(line) for line in lines if line.startswith(b"{")]
    assert heard.strays == [line for line in lines if line.startswith(b"!")]


async def test_a_line_that_is_too_long_is_dropped_even_if_it_ends() -> None:
    heard = Heard(limit=2 << 20)
    long = orjson.dumps({"long": "x" * (3 << 20)}) + b"\n"

    await asyncio.gather(asyncio.to_thread(_write_as_far_as_it_goes, heard.writing, long), heard.closed)

    assert heard.closed.result() == "it sent a message of more than 2 MB"
    assert heard.messages == []


def _write_as_far_as_it_goes(descriptor: int, data: bytes) -> None:
    with open(descriptor, "wb", buffering=0) as file, contextlib.suppress(BrokenPipeError):
        while data:
            data = data[file.write(data) :]


async def test_what_was_written_in_one_turn_goes_out_as_one() -> None:
    reading, writing = os.pipe()
    writer = FrameWriter(writing)

    for number in range(3):
        writer.send({"n": number})
    await asyncio.sleep(0)

    assert os.read(reading, 1000) == b'{"n":0}\n{"n":1}\n{"n":2}\n'
    writer.close()
    os.close(reading)


async def test_what_waits_when_the_writer_closes_is_still_written() -> None:
    reading, writing = os.pipe()
    writer = FrameWriter(writing)

    writer.send({"last": True})
    writer.close()

    assert os.read(reading, 1000) == b'{"last":true}\n'
    with pytest.raises(NotWritable):
        writer.send({"too": "late"})
    os.close(reading)


@pytest.mark.parametrize("message", [{"a": "\ud800"}, {"a": {1, 2}}, {"a": 1 << 70}])
async def test_what_is_not_json_is_refused_at_once(message: Any) -> None:
    reading, writing = os.pipe()
    writer = FrameWriter(writing)

    with pytest.raises(ValueError):  # noqa: PT011  # the library's words
        writer.send(message)

    writer.close()
    os.close(reading)


async def test_a_pipe_that_broke_is_no_error_of_the_writer() -> None:
    reading, writing = os.pipe()
    writer = FrameWriter(writing)
    os.close(reading)

    writer.send({"n": 1})
    await asyncio.sleep(0)

    with pytest.raises(NotWritable):
        writer.send({"n": 2})


@given(lines=st.lists(st.binary(max_size=9).filter(lambda line: b"\n" not in line)), cuts=st.lists(st.integers(1, 7)))
def test_lines_do_not_depend_on_how_the_stream_is_cut_and_a_long_one_is_dropped(
    lines: list[bytes], cuts: list[int]
) -> None:
    splitter = LineSplitter(6)
    stream = b"".join(line + b"\n" for line in lines) + b"rest"
    found: list[bytes | None] = []
    for cut in cuts:
        found += splitter.feed(stream[:cut])
        stream = stream[cut:]
    found += splitter.feed(stream)

    assert found == [line if len(line) <= 6 else None for line in lines]
    assert (splitter.is_too_long, splitter.take()) == (False, b"rest")
