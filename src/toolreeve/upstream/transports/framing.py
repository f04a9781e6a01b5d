"""How do messages travel over pipes? One JSON object a line, both ways, without ever waiting for the other side.

A message and what waits to be written are bounded, so that no server can fill our memory; what is no JSON is a stray
line, which is shown to people and otherwise ignored.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable

import orjson

from toolreeve.upstream.transports.transport import MAX_MESSAGE, Hear, Message, ServerUnavailable

_CHUNK = 1 << 16  # what a pipe holds; room for more would be made and thrown away at every read
_MEGABYTE = 1 << 20

Stray = Callable[[bytes], None]
Closed = Callable[[str | None], None]


class FrameReader:
    """What comes out of a pipe. `closed` is called once, with what was wrong if anything was, unless we close first."""

    def __init__(self, descriptor: int, hear: Hear, stray: Stray, closed: Closed, limit: int = MAX_MESSAGE) -> None:
        self._descriptor, self._limit = descriptor, limit
        self._hear, self._stray, self._closed = hear, stray, closed
        self._begun: list[bytes] = []  # a line that has not ended yet
        self._size = 0
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
        first, *more = chunk.split(b"\n")
        self._begun.append(first)
        self._size += len(first)
        if self._size > self._limit:
            self._end(f"it sent a message of more than {self._limit // _MEGABYTE} MB")
        elif more:
            self._lines(more)

    def _lines(self, more: list[bytes]) -> None:
        """The line that was begun has ended; the last of the others has not."""
        line = self._begun[0] if len(self._begun) == 1 else b"".join(self._begun)
        begun = more.pop()
        self._begun, self._size = [begun], len(begun)
        self._take(line)
        for line in more:
            self._take(line)

    def _take(self, line: bytes) -> None:
        if not line or self._descriptor < 0:
            return
        try:
            message = orjson.loads(line)
        except ValueError:
            self._stray(line)
            return
        if type(message) is dict:
            self._hear(message)
        elif type(message) is list:  # a batch, as one revision of the protocol had it
            for each in message:
                if type(each) is dict:
                    self._hear(each)
        else:
            self._stray(line)

    def _end(self, reason: str | None) -> None:
        if self._descriptor >= 0:
            rest = b"".join(self._begun)[:_CHUNK]
            self.close()
            if rest:
                self._stray(rest)
            self._closed(reason)

    def mute(self) -> None:
        """Go on reading, so that the other side can go on writing, but pass nothing on."""
        self._hear = self._stray = _ignore

    def close(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1
            self._begun = []


class FrameWriter:
    """What goes into a pipe, gathered and written once per turn of the loop."""

    def __init__(self, descriptor: int, limit: int = MAX_MESSAGE) -> None:
        self._descriptor, self._limit = descriptor, limit
        self._waiting: list[bytes | memoryview] = []
        self._size = 0
        self._scheduled = False
        self._blocked = False
        self._loop = asyncio.get_running_loop()

    def send(self, message: Message) -> None:
        """Raises ServerAway, and ValueError for what cannot be written as JSON or is too long."""
        data = _spelled(message)
        if self._descriptor < 0:
            raise ServerUnavailable("its input is closed")
        if len(data) > self._limit:
            raise ValueError(f"it is longer than {self._limit // _MEGABYTE} MB")
        if self._size + len(data) > self._limit:
            raise ServerUnavailable(f"it does not read what is sent to it: {self._size // _MEGABYTE} MB are waiting")
        self._waiting.append(data)
        self._size += len(data)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """What the pipe does not take is continued when there is room."""
        self._scheduled = self._blocked
        if self._descriptor < 0 or not self._waiting:
            return
        try:
            written = os.write(self._descriptor, self._gathered())
        except (BlockingIOError, InterruptedError):
            written = 0
        except OSError:
            self.close()  # its end is heard of on its output
            return
        self._advance(written)
        self._wait_for_room(wanted=self._size > 0)

    def _gathered(self) -> bytes | memoryview:
        """All that waits, but for what follows a long message: that would only be copied again and again."""
        if len(self._waiting) > 1 and len(self._waiting[0]) < _CHUNK:
            self._waiting = [b"".join(self._waiting)]
        return self._waiting[0]

    def _advance(self, written: int) -> None:
        self._size -= written
        if written == len(self._waiting[0]):
            del self._waiting[0]
        elif written:
            self._waiting[0] = memoryview(self._waiting[0])[written:]

    def _wait_for_room(self, *, wanted: bool) -> None:
        if wanted and not self._blocked:
            self._loop.add_writer(self._descriptor, self._flush)
        elif self._blocked and not wanted:
            self._loop.remove_writer(self._descriptor)
        self._blocked = self._scheduled = wanted

    def close(self) -> None:
        """What fits is still written."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        if self._blocked:
            self._loop.remove_writer(descriptor)
        elif self._waiting:
            with contextlib.suppress(OSError):
                os.write(descriptor, self._gathered())
        os.close(descriptor)
        self._waiting, self._size = [], 0


def _ignore(_: object) -> None:
    """Nobody listens any more."""


def _spelled(message: Message) -> bytes:
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as problem:
        raise ValueError(str(problem)) from None
