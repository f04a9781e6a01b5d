"""A terminal of its own for a command, and the person who sits there."""

import os
import pty
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.conftest import Shell

DEADLINE = 30.0
PATIENCE = 2.0


class Terminal:
    def __init__(self, process: int, descriptor: int) -> None:
        self.process, self.descriptor, self.text = process, descriptor, ""

    def shows(self, text: str) -> str:
        """Wait until the text appears, and take all up to it off the screen."""
        end = time.monotonic() + DEADLINE
        while text not in self.text:
            ready, _, _ = select.select([self.descriptor], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"{text!r} was not shown, but:\n{self.text}"
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")
        before, _, self.text = self.text.partition(text)
        return before

    def types(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def ends(self) -> int:
        """Its exit status; what it says until then is thrown away."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                return os.waitstatus_to_exitcode(status)
            if select.select([self.descriptor], [], [], 0.05)[0]:
                self._drain()
        raise AssertionError("it did not end")

    def drain(self) -> None:
        while select.select([self.descriptor], [], [], 0)[0]:
            try:
                self.text += os.read(self.descriptor, 65536).decode(errors="replace")
            except OSError:
                return

    def _drain(self) -> None:
        try:
            self.text += os.read(self.descriptor, 65536).decode(errors="replace")
        except OSError:  # the other side is closed: it is about to end
            select.select([], [], [], 0.05)

    def interrupt(self) -> None:
        """Press ^C until it ends, as a person would: one that is typed just as a question comes is thrown away with all
        that was typed before it."""
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            os.write(self.descriptor, b"\x03")
            again = time.monotonic() + PATIENCE
            while time.monotonic() < again:
                if os.waitpid(self.process, os.WNOHANG) != (0, 0):
                    return
                select.select([], [], [], 0.05)
        raise AssertionError("it did not end when it was interrupted")


def run_on_terminal(shell: Shell, *args: str, columns: int) -> str:
    """All that a command shows on a terminal of this width."""
    os.environ["COLUMNS"] = str(columns)
    try:
        with on_terminal(shell, *args) as screen:
            assert screen.ends() == 0
            screen.drain()
            return screen.text
    finally:
        del os.environ["COLUMNS"]


@contextmanager
def on_terminal(shell: Shell, *args: str, typed: str = "") -> Iterator[Terminal]:
    """A command as the foreground program of a terminal of its own; `typed` is there before it starts."""
    process, descriptor = pty.fork()
    if process == 0:
        os.chdir(shell.workspace)
        os.execv(sys.executable, [sys.executable, "-m", "toolreeve", *args])
    os.write(descriptor, typed.encode())
    try:
        yield Terminal(process, descriptor)
    finally:
        os.close(descriptor)
