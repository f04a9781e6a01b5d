"""Output capture: keeps the beginning and the end of a stream up to a limit.

What lies between is read and discarded: a program is never blocked by a full pipe. A mark says how much it was.
"""

import asyncio
import os
from collections.abc import Callable

from toolreeve.core.process import OnOutput, Stream

_CHUNK = 65536


class Capture:
    """Reads a pipe until its end."""

    __slots__ = ("_dropped", "_head", "_loop", "_name", "_on_end", "_on_output", "_pipe", "_room", "_tail", "closed")

    def __init__(self, name: Stream, limit: int, loop: asyncio.AbstractEventLoop, on_output: OnOutput | None) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._name = name
        self._room = max(limit // 2, 1)
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
        if self._on_output is not None and not self._dropped:
            self._on_output(self._name, data)
        room = self._room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._room:
            self._trim()

    def _trim(self) -> None:
        surplus = len(self._tail) - self._room
        if surplus > 0:
            del self._tail[:surplus]
            self._dropped += surplus

    @property
    def truncated(self) -> bool:
        return self._dropped > 0 or len(self._tail) > self._room

    @property
    def kept(self) -> bytes:
        """All of it, or the beginning and the end with a mark between them."""
        if not self.truncated:
            return bytes(self._head + self._tail)
        self._trim()
        mark = f"\n[… {self._dropped:,} bytes of {self._name} were not kept …]\n".encode()
        return bytes(self._head) + mark + bytes(self._tail)

    def close(self) -> None:
        """Close the pipe, even if a process still holds its write end."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._on_end()
