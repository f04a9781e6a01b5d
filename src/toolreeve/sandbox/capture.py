"""Output capture: keeps the beginning and end of a stream.

What lies between is read and discarded: a program is never blocked by a full pipe. A mark says how much it was. The end
is a ring that is overwritten in place, so that no stream ever takes more memory than its limit.
"""

import asyncio
import os
from collections.abc import Callable

from toolreeve.core.process import OnOutput, Stream

_CHUNK = 65536


class Capture:
    """Reads a pipe until its end."""

    __slots__ = (
        "_head",
        "_loop",
        "_name",
        "_on_end",
        "_on_output",
        "_overwritten",
        "_pipe",
        "_position",
        "_ring",
        "_room",
        "closed",
    )

    def __init__(self, name: Stream, limit: int, loop: asyncio.AbstractEventLoop, on_output: OnOutput | None) -> None:
        self._head = bytearray()
        self._ring = bytearray()
        self._position = 0  # of the oldest byte in a full ring
        self._overwritten = 0
        self._name = name
        self._room = max(limit // 2, 1)
        self._loop = loop
        self._on_output = on_output
        self._on_end: Callable[[], None] | None = None
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
        if self._on_output is not None and not self._overwritten:
            self._on_output(self._name, data)
        room = self._room - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        room = self._room - len(self._ring)
        self._ring += data[:room]
        if len(data) > room:
            self._overwrite(data[room:])

    def _overwrite(self, data: bytes) -> None:
        """Replace the oldest bytes of the full ring."""
        self._overwritten += len(data)
        skipped = max(0, len(data) - self._room)  # would be overwritten by the rest of the data itself
        self._position = (self._position + skipped) % self._room
        data = data[skipped:]
        before_wrap = min(len(data), self._room - self._position)
        self._ring[self._position : self._position + before_wrap] = data[:before_wrap]
        rest = data[before_wrap:]
        self._ring[: len(rest)] = rest
        self._position = (self._position + len(data)) % self._room

    @property
    def truncated(self) -> bool:
        return self._overwritten > 0

    def take(self) -> bytes:
        """All of it, or the beginning and the end with a mark between them. The buffers are given back.

        The mark is ASCII: one wider character would double or quadruple the memory of the whole text.
        """
        mark = f"\n[... {self._overwritten:,} bytes of {self._name} were not kept ...]\n" if self._overwritten else ""
        with memoryview(self._ring) as ring:
            kept = b"".join((self._head, mark.encode(), ring[self._position :], ring[: self._position]))
        self._head = bytearray()
        self._ring = bytearray()
        return kept

    def close(self) -> None:
        """Close the pipe, even if a process still holds its write end."""
        if not self.closed:
            self.closed = True
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            on_end, self._on_end = self._on_end, None  # or a cycle would keep the output until it is collected
            if on_end is not None:
                on_end()
