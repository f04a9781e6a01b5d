"""What did it say? The beginning of a stream up to a limit, in bounded memory; the rest is read and let go."""

import asyncio
import os
from collections.abc import Callable

from toolreeve.core.process import OnOutput, Stream

_AT_ONCE = 65536


class Capture:
    """Reads a pipe until its end. A program is never held up by a pipe that nobody empties."""

    __slots__ = ("_loop", "_name", "_on_end", "_on_output", "_pipe", "_room", "closed", "kept", "truncated")

    def __init__(self, name: Stream, limit: int, loop: asyncio.AbstractEventLoop, on_output: OnOutput | None) -> None:
        self.kept = bytearray()
        self.truncated = False
        self._name, self._room, self._loop, self._on_output = name, limit, loop, on_output
        self.closed = False

    def start(self, on_end: Callable[[], None]) -> int:
        """Begin to read; the end to write to is the answer, and the caller's to close."""
        self._on_end = on_end
        self._pipe, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._pipe, False)
        self._loop.add_reader(self._pipe, self._read)
        return writing

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, _AT_ONCE)
        except BlockingIOError:
            return
        if data:
            self._keep(data)
        else:
            self.close()

    def _keep(self, data: bytes) -> None:
        if len(data) > self._room:
            data = data[: self._room]
            self.truncated = True
        if data:
            self._room -= len(data)
            self.kept += data
            if self._on_output is not None:
                self._on_output(self._name, data)

    def close(self) -> None:
        """Let go of the pipe, whoever still holds its other end."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._on_end()
