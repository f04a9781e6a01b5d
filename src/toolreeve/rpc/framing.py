"""Newline-delimited JSON over pipes, non-blocking in both directions.

A message and the write queue are bounded, so that no peer can fill our memory. A line that is not JSON is passed to
`on_stray`: it is shown to people and otherwise ignored.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable

import orjson

from toolreeve.rpc.messages import Message, encode_line

_CHUNK = 1 << 16  # the capacity of a pipe; a larger buffer would be allocated for nothing at every read
_MEGABYTE = 1 << 20

MAX_MESSAGE = 64 << 20
"""Bytes of one message, and of all messages queued for a peer that does not read them."""

OnMessage = Callable[[Message], None]
OnStray = Callable[[bytes], None]
OnEnd = Callable[[str | None], None]


class NotWritable(Exception):
    """The pipe is closed, or the other side does not read. The message is for people."""


class LineSplitter:
    """Splits a stream into lines. A line of more than `limit` bytes is dropped as it arrives."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._partial: list[bytes] = []
        self._size = 0

    @property
    def is_too_long(self) -> bool:
        """Whether the line that has begun is."""
        return self._size > self._limit

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that have ended; None stands for one that was too long."""
        first, *more = data.split(b"\n")
        self._keep(first)
        if not more:
            return []
        lines = [self.take()]
        self._keep(more.pop())
        return lines + [line if len(line) <= self._limit else None for line in more]

    def take(self) -> bytes | None:
        """The line that has begun, as if it had ended."""
        line = None if self.is_too_long else b"".join(self._partial)
        self._partial = []
        self._size = 0
        return line

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self.is_too_long:
            self._partial.clear()
        elif part:
            self._partial.append(part)


class FrameReader:
    """Reads messages from a pipe. `on_end` is called once, with the problem if there was one, unless we close first."""

    def __init__(
        self, descriptor: int, on_message: OnMessage, on_stray: OnStray, on_end: OnEnd, limit: int = MAX_MESSAGE
    ) -> None:
        self._descriptor = descriptor
        self._too_long = f"it sent a message of more than {limit // _MEGABYTE} MB"
        self._lines = LineSplitter(limit)
        self._on_message = on_message
        self._on_stray = on_stray
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._readable)

    def _readable(self) -> None:
        try:
            chunk = os.read(self._descriptor, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._end(None)
            return
        for line in self._lines.feed(chunk):
            if line is None:
                self._end(self._too_long)
                return
            self._line(line)
        if self._lines.is_too_long:
            self._end(self._too_long)

    def _line(self, line: bytes) -> None:
        if not line or self._descriptor < 0:
            return
        try:
            message = orjson.loads(line)
        except ValueError:
            self._on_stray(line)
            return
        if type(message) is dict:
            self._on_message(message)
        elif type(message) is list:  # a batch, as in revision 2025-03-26
            for each in message:
                if type(each) is dict:
                    self._on_message(each)
        else:
            self._on_stray(line)

    def _end(self, problem: str | None) -> None:
        if self._descriptor >= 0:
            rest = self._lines.take()
            self.close()
            if rest:
                self._on_stray(rest[:_CHUNK])
            self._on_end(problem)

    def mute(self) -> None:
        """Keep reading, so that the other side can keep writing, but discard everything."""
        self._on_message = self._on_stray = _discard

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


class FrameWriter:
    """Writes messages to a pipe, batched into one write per turn of the loop."""

    def __init__(self, descriptor: int, limit: int = MAX_MESSAGE) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._queue: list[bytes | memoryview] = []
        self._size = 0
        self._is_scheduled = False
        self._is_blocked = False
        self._loop = asyncio.get_running_loop()

    def send(self, message: Message) -> None:
        """Raises NotWritable, and ValueError for what is not JSON or too long."""
        data = encode_line(message)
        if self._descriptor < 0:
            raise NotWritable("its input is closed")
        if len(data) > self._limit:
            raise ValueError(f"it is longer than {self._limit // _MEGABYTE} MB")
        if self._size + len(data) > self._limit:
            raise NotWritable(f"it does not read its input: {self._size // _MEGABYTE} MB are queued")
        self._queue.append(data)
        self._size += len(data)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """What the pipe does not take is written when there is room again."""
        self._is_scheduled = self._is_blocked
        if self._descriptor < 0 or not self._queue:
            return
        try:
            written = os.write(self._descriptor, self._next_block())
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError:
            self.close()  # the reader sees the end of the output
            return
        self._advance(written)
        self._wait_for_room(wanted=self._size > 0)

    def _next_block(self) -> bytes | memoryview:
        """The whole queue, or only its long first message: joining that would copy it again and again."""
        if len(self._queue) > 1 and len(self._queue[0]) < _CHUNK:
            self._queue = [b"".join(self._queue)]
        return self._queue[0]

    def _advance(self, written: int) -> None:
        self._size -= written
        if written == len(self._queue[0]):
            del self._queue[0]
        elif written:
            self._queue[0] = memoryview(self._queue[0])[written:]

    def _wait_for_room(self, *, wanted: bool) -> None:
        if wanted and not self._is_blocked:
            self._loop.add_writer(self._descriptor, self._flush)
        elif self._is_blocked and not wanted:
            self._loop.remove_writer(self._descriptor)
        self._is_blocked = self._is_scheduled = wanted

    def close(self) -> None:
        """What fits into the pipe is still written."""
        if self._descriptor < 0:
            return
        descriptor = self._descriptor
        self._descriptor = -1
        if self._is_blocked:
            self._loop.remove_writer(descriptor)
        elif self._queue:
            with contextlib.suppress(OSError):
                os.write(descriptor, self._next_block())
        os.close(descriptor)
        self._queue = []
        self._size = 0


def _discard(_: object) -> None:
    """The callback of a muted reader."""
