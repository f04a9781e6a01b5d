"""Shows the last output line of a running call on the terminal.

It is erased before anything else is printed there: a question, the result, a note. Pipes never see it.
"""

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import on_terminal
from toolreeve.core.peer import PeerUnavailable
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.approval.channel import JudgeEdit
    from toolreeve.approval.channels.terminal import TerminalChannel
    from toolreeve.approval.request import Answer, Request

ERASE = "\r\x1b[K"


def shows_live_output() -> bool:
    return on_terminal() and sys.stderr.isatty()


class LiveOutput:
    """The peer of a call on the terminal. Nobody is asked through it: the terminal channel does that."""

    credential = ""
    wants_progress = True
    can_ask = False
    defers = False
    decision = None

    def __init__(self, session: str) -> None:
        self.session = session
        self.held = False
        self._shown = False

    async def ask(self, request: Any) -> Any:  # noqa: ARG002
        raise PeerUnavailable

    async def progress(self, text: str) -> None:
        last = next((line for line in reversed(text.splitlines()) if line.strip()), "")
        if last and not self.held:
            room = max(shutil.get_terminal_size().columns - 3, 1)
            click.echo(f"{ERASE}{one_line(last)[:room]} …", err=True, nl=False)
            self._shown = True

    def hold(self) -> None:
        """Erase the line, and show none until `held` is reset."""
        self.held = True
        if self._shown:
            click.echo(ERASE, err=True, nl=False)
            self._shown = False

    def close(self) -> None:
        self.hold()


class QuietChannel:
    """A channel whose questions no live line overwrites."""

    def __init__(self, channel: "TerminalChannel", live: LiveOutput) -> None:
        self.name = channel.name
        self._channel = channel
        self._live = live

    @property
    def judge_edit(self) -> "JudgeEdit | None":
        return self._channel.judge_edit

    @judge_edit.setter
    def judge_edit(self, judge: "JudgeEdit | None") -> None:
        self._channel.judge_edit = judge

    def available(self) -> bool:
        return self._channel.available()

    async def ask(self, request: "Request") -> "Answer":
        self._live.hold()
        try:
            return await self._channel.ask(request)
        finally:
            self._live.held = False
