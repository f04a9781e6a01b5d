"""Non-blocking terminal I/O: lines in and out without blocking the event loop.

The terminal is opened anew, so that its settings for other processes stay unchanged. Input typed before the question
is discarded: an answer must follow it.
"""

import asyncio
import contextlib
import os
import sys
import termios
from collections.abc import Iterator

MAX_LINE = 1 << 20
CONTROLLING = "/dev/tty"


class Hangup(Exception):
    """The terminal was closed while a question was open."""


def find_terminal(device: str | None) -> str | None:
    """The terminal to ask on: the given one, else the controlling one, else that of the standard streams. None also if
    the process is in the background, where reading would stop it."""
    for candidate in (device,) if device is not None else (CONTROLLING, _standard_terminal()):
        if candidate is not None and _is_usable(candidate):
            return candidate
    return None


def _standard_terminal() -> str | None:
    stderr = sys.__stderr__.fileno() if sys.__stderr__ else 2
    return os.ttyname(0) if os.isatty(0) and os.isatty(stderr) else None


def _is_usable(device: str) -> bool:
    try:
        descriptor = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.isatty(descriptor) and _in_foreground(descriptor)
    finally:
        os.close(descriptor)


def _in_foreground(descriptor: int) -> bool:
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return True  # not the controlling terminal, so reading from it cannot stop this process


@contextlib.contextmanager
def open_console(device: str) -> Iterator["Console"]:
    descriptor = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield Console(descriptor, device)
    finally:
        os.close(descriptor)


class Console:
    def __init__(self, descriptor: int, device: str) -> None:
        self.device = device
        self._descriptor = descriptor
        self._typed = bytearray()

    def discard_typed(self) -> None:
        self._typed.clear()
        termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def say(self, text: str) -> None:
        rest = memoryview(text.encode(errors="replace"))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest[:4096]) :]
            except BlockingIOError:
                await self._writable()

    def say_now(self, text: str) -> None:
        """Write without waiting; bytes that the terminal does not take at once are dropped."""
        with contextlib.suppress(OSError):
            os.write(self._descriptor, text.encode(errors="replace"))

    async def line(self) -> str:
        """The next line typed. Raises Hangup at the end of input."""
        while b"\n" not in self._typed:
            await self._readable()
            self._take()
        line, _, rest = bytes(self._typed).partition(b"\n")
        self._typed = bytearray(rest)
        return line.decode(errors="replace").strip()

    def _take(self) -> None:
        try:
            read = os.read(self._descriptor, 4096)
        except BlockingIOError:
            return
        except OSError as problem:
            raise Hangup(f"the terminal is gone: {problem.strerror}") from None
        if not read or len(self._typed) > MAX_LINE:
            raise Hangup("the terminal was closed before an answer")
        self._typed += read

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._descriptor, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_writer(self._descriptor, _wake, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._descriptor)


def _wake(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
