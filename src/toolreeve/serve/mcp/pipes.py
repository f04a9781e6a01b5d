"""Exclusive line transport over stdin and stdout.

While serving, descriptor 0 is empty and 1 is stderr: nothing that tools or their children print can reach the client.
No descriptor that other processes hold is made non-blocking, except the pipes and sockets that we read or write.
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

from toolreeve.rpc.framing import MAX_MESSAGE, LineSplitter

HIGH_WATER = 1 << 20
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Pipes:
    """Private copies of stdin and stdout. `pumps` are threads for descriptors that the event loop cannot poll."""

    source: FileIO
    sink: FileIO
    pumps: tuple[threading.Thread, ...] = ()


def claim() -> Pipes:
    """Must be called before anything else can print."""
    source = _private(0)
    sink = _private(1)
    empty = _move_up(os.open(os.devnull, os.O_RDWR))
    if not _is_open(2):
        os.dup2(empty, 2)
    os.dup2(empty, 0)
    os.dup2(2, 1)
    os.close(empty)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)  # None if it was closed at start
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    reading, incoming = _pumped(source, outward=False)
    writing, outgoing = _pumped(sink, outward=True)
    pumps = tuple(thread for thread in (incoming, outgoing) if thread is not None)
    return Pipes(FileIO(reading, "r"), FileIO(writing, "w"), pumps)


def _private(descriptor: int) -> int:
    """A copy of the descriptor; of /dev/null if it was closed at start."""
    if _is_open(descriptor):
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    return _move_up(os.open(os.devnull, os.O_RDWR))


def _move_up(descriptor: int) -> int:
    """The same file on a descriptor above the standard three."""
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
    """Files and terminals need a thread: the loop cannot poll files, and must not make terminals non-blocking."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return descriptor, None
    reading, writing = os.pipe()
    if outward:
        ours, source, sink = writing, reading, descriptor
    else:
        ours, source, sink = reading, descriptor, writing
    # Reading from a terminal cannot be interrupted, so that thread is a daemon; the other ends after the last write.
    thread = threading.Thread(target=_pump, args=(source, sink), daemon=not outward, name="stdio-pump")
    thread.start()
    return ours, thread


def _pump(source: int, sink: int) -> None:
    try:
        while chunk := os.read(source, _CHUNK):
            while chunk:
                chunk = chunk[os.write(sink, chunk) :]
    except OSError:
        pass  # one end is closed, and the connection with it
    finally:
        os.close(source)
        os.close(sink)


class LineReader(asyncio.Protocol):
    """Splits the input into lines. An overlong line is reported and discarded, however long it is."""

    def __init__(
        self, receive: Callable[[bytes], None], too_long: Callable[[], None], ended: Callable[[], None]
    ) -> None:
        self._receive = receive
        self._too_long = too_long
        self._ended = ended
        self._lines = LineSplitter(MAX_MESSAGE)

    def data_received(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._pass_on(line)

    def eof_received(self) -> None:
        self._pass_on(self._lines.take())
        self._ended()

    def connection_lost(self, _: Exception | None) -> None:
        self._ended()

    def _pass_on(self, line: bytes | None) -> None:
        if line is None:
            self._too_long()
        elif line and not line.isspace():
            self._receive(line)


class LineWriter(asyncio.Protocol):
    """Collects the lines of one event loop turn and writes them at once; reports congestion."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ended: Callable[[], None]) -> None:
        self._loop = loop
        self._ended = ended
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
        lines = self._lines
        self._lines = []
        self._size = 0
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
        """Wait until everything is written; abort after `timeout` seconds."""
        self.on_pause = self.on_resume = _do_nothing
        self.flush()
        if self._transport is None or self._lost:
            return
        self._transport.set_write_buffer_limits(high=0)  # from now on, "open" means that the buffer is empty
        try:
            async with asyncio.timeout(timeout):
                await self._open.wait()
        except TimeoutError:
            self._transport.abort()


def _do_nothing() -> None:
    """The default callback."""
