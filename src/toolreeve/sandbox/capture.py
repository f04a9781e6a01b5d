"""Output capture: keeps the beginning of a stream up to a limit.

The rest is read and discarded: a program is never blocked by a full pipe.
"""

import asyncio
import os
from collections.abc import Callable

from toolreeve.core.process import OnOutput, Stream

_CHUNK = 65536


class Capture:
    """Reads a pipe until its end."""

    __slots__ = ("_loop", "_name", "_on_end", "_on_output", "_pipe", "_room", "closed", "kept", "truncated")

    def __init__(self, name: Stream, limit: int, loop: asyncio.AbstractEventLoop, on_output: OnOutput | None) -> None:
        self.kept = bytearray()
        self.truncated = False
        self._name = name
        self._room = limit
        self._loop = loop
        self._on_output = on_output
        self.closed = False

    def start(self, on_end: Callable[[], None]) -> int:
        """Begin to read. Returns the write end, which the caller closes."""
        self._on_end = on_end
        self._pipe, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._pipe, False)
        self._loop.add_reader(self._pipe, self._read)
        return writing

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, _CHUNK)
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
        """Close the pipe, even if a process still holds its write end."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._on_end()
