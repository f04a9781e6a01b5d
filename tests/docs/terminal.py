"""Runs the commands of a page in one bash on a pseudo-terminal.

An answer that the page shows after a prompt is typed when the prompt appears. Every wait has a deadline.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.output_match import plain

DEADLINE = 60.0
COLUMNS = 110
_END = "\x02end of command\x03"


@dataclass(slots=True)
class Command:
    """A command, and the lines that the page shows below it."""

    text: str
    printed: list[str] = field(default_factory=list)


def read_commands(text: str) -> list[Command]:
    """`$ ` begins a command, `> ` right below it continues it; the rest is output."""
    commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:]))
        elif not commands:
            raise ValueError(f"output before the first command: {line!r}")
        elif line.startswith("> ") and not commands[-1].printed:
            commands[-1].text += f"\n{line[2:]}"
        else:
            commands[-1].printed.append(line.rstrip())
    return commands


class Terminal:
    """A bash on a pseudo-terminal."""

    def __init__(self, workspace: Path, environ: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=theirs,
            stderr=theirs,
            cwd=workspace,
            env=dict(environ),
            start_new_session=True,
        )
        # The first terminal that a session opens becomes its controlling terminal.
        self._send(f"exec 3<>{os.ttyname(theirs)}\n")
        os.close(theirs)

    def run(self, command: Command) -> tuple[str, int]:
        """What it wrote, and its exit status, which `$?` still has for the next command."""
        self._send(f"{{ {command.text}\n}} </dev/tty\n__status=$?; printf '{_END}%d\\n' $__status; (exit $__status)\n")
        output, _, status = self._read(command.printed).rpartition(_END)
        return output, int(status)

    def _send(self, text: str) -> None:
        if self._shell.stdin is None:
            raise RuntimeError("the shell has no input")
        self._shell.stdin.write(text.encode())
        self._shell.stdin.flush()

    def _read(self, printed: Sequence[str]) -> str:
        text = ""
        answered = 0
        ends = time.monotonic() + DEADLINE
        while not (_END in text and text.endswith("\n")):
            ready, _, _ = select.select([self._ours], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                raise TimeoutError(f"nothing more came after:\n{text[-2000:]}")
            text = plain(text + os.read(self._ours, 65536).decode(errors="replace"))
            question = text[answered:].rpartition("\n")[2]
            if (answer := _answer_to(question, printed)) is not None:
                os.write(self._ours, f"{answer}\n".encode())
                answered = len(text)
        return text

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._send("exit 0\n")
        os.killpg(self._shell.pid, signal.SIGKILL)  # with everything that a page left running
        self._shell.communicate()
        os.close(self._ours)


def _answer_to(question: str, printed: Sequence[str]) -> str | None:
    """What the page shows after the prompt at the end of the output."""
    if not question.endswith(": "):
        return None
    return next((line.removeprefix(question) for line in printed if f"{line} ".startswith(question)), None)
