"""How do stdin and stdout become a wire that nothing else can write on? They are taken away from everybody else.

While we serve, descriptor 0 is empty and 1 is stderr: what tools and their children print cannot reach the client. No
descriptor that others hold is made non-blocking, except pipes and sockets that are ours to read or write.
"""

import asyncio
import fcntl
import os
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO

MAX_LINE_BYTES = 64 << 20
HIGH_WATER = 1 << 20
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Pipes:
    """Private copies of what were stdin and stdout. `pumps` carry what the loop cannot wait for itself."""

    source: FileIO
    sink: FileIO
    pumps: tuple[threading.Thread, ...] = ()


def claim() -> Pipes:
    """To be called before anything else may print."""
    source, sink, empty = _private(0), _private(1), _move_up(os.open(os.devnull, os.O_RDWR))
    if not _is_open(2):
        os.dup2(empty, 2)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    os.close(empty)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)  # None if it was closed when we were started
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    reading, incoming = _pumped(source, outward=False)
    writing, outgoing = _pumped(sink, outward=True)
    pumps = tuple(thread for thread in (incoming, outgoing) if thread is not None)
    return Pipes(FileIO(reading, "r"), FileIO(writing, "w"), pumps)


def _private(descriptor: int) -> int:
    """A copy; of nothing, if it was closed when we were started."""
    if _is_open(descriptor):
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    return _move_up(os.open(os.devnull, os.O_RDWR))


def _move_up(descriptor: int) -> int:
    """The same file, out of the way of the standard three."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _pumped(descriptor: int, *, outward: bool) -> tuple[int, threading.Thread | None]:
    """Files and terminals are carried by a thread: the loop cannot wait for the one, and must not unblock the other."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return descriptor, None
    reading, writing = os.pipe()
    ours, source, sink = (writing, reading, descriptor) if outward else (reading, descriptor, writing)
    # Reading from a terminal cannot be interrupted: that pump may outlive us. The other one ends with our last word.
    thread = threading.Thread(target=_pump, args=(source, sink), daemon=not outward, name="stdio-pump")
    thread.start()
    return ours, thread


def _pump(source: int, sink: int) -> None:
    try:
        while chunk := os.read(source, _CHUNK):
            while chunk:
                chunk = chunk[os.write(sink, chunk) :]
    except OSError:
        pass  # one of the ends is gone, and with it the conversation
    finally:
        os.close(source)
        os.close(sink)


class LineReader(asyncio.Protocol):
    """Cuts what comes in into lines. A line that is too long is reported and dropped, however long it goes on."""

    def __init__(
        self, receive: Callable[[bytes], None], too_long: Callable[[], None], ended: Callable[[], None]
    ) -> None:
        self._receive, self._too_long, self._ended = receive, too_long, ended
        self._parts: list[bytes] = []
        self._size = 0

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._keep(line)
            self._finish()
        self._keep(rest)

    def eof_received(self) -> None:
        if self._size:
            self._finish()
        self._ended()

    def connection_lost(self, _: Exception | None) -> None:
        self._ended()

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > MAX_LINE_BYTES:
            self._parts.clear()
        elif part:
            self._parts.append(part)

    def _finish(self) -> None:
        parts, size = self._parts, self._size
        self._parts, self._size = [], 0
        if size > MAX_LINE_BYTES:
            self._too_long()
            return
        line = parts[0] if len(parts) == 1 else b"".join(parts)
        if line and not line.isspace():
            self._receive(line)


class LineWriter(asyncio.Protocol):
    """Gathers the lines of one turn of the loop and writes them at once; says when too many wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        self._loop, self._ended = loop, ended
        self._lines: list[bytes] = []
        self._size = 0
        self._transport: asyncio.WriteTransport | None = None
        self._open: asyncio.Event = asyncio.Event()
        self._open.set()
        self._lost = False
        self.on_resume: Callable[[], None] = _do_nothing
        self.on_pause: Callable[[], None] = _do_nothing

    @property
    def congested(self) -> bool:
        return not self._open.is_set() or self._size > HIGH_WATER

    def send(self, line: bytes) -> None:
        if self._lost:
            return
        if not self._lines:
            self._loop.call_soon(self.flush)
        self._lines.append(line)
        self._size += len(line)

    async def clear(self) -> None:
        self.flush()
        await self._open.wait()

    def flush(self) -> None:
        lines, self._lines, self._size = self._lines, [], 0
        if lines and self._transport is not None and not self._lost:
            self._transport.write(lines[0] if len(lines) == 1 else b"".join(lines))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._transport.set_write_buffer_limits(high=HIGH_WATER)  # type: ignore[union-attr]

    def pause_writing(self) -> None:
        self._open.clear()
        self.on_pause()

    def resume_writing(self) -> None:
        self._open.set()
        self.on_resume()

    def connection_lost(self, _: Exception | None) -> None:
        self._lost = True
        self._open.set()
        self._ended()

    async def drain(self, timeout: float) -> None:
        """Until all is written, or the client does not take it in time."""
        self.on_pause = self.on_resume = _do_nothing
        self.flush()
        if self._transport is None or self._lost:
            return
        self._transport.set_write_buffer_limits(high=0)  # from now on, "open" means that nothing waits
        try:
            async with asyncio.timeout(timeout):
                await self._open.wait()
        except TimeoutError:
            self._transport.abort()


def _do_nothing() -> None:
    """Nobody minds."""
