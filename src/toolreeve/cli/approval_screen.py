"""Full-screen list of pending approvals: the live list, one question, keys.

A single key decides nothing by accident: `y` and `n` count when pressed twice, not before the question was in sight for
the dead time, and `y` not before its end was. Everything else (session, always, edit, a note) is asked for in the
dialogue of the terminal.
"""

import asyncio
import contextlib
import os
import termios
import time
import tty
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from toolreeve.approval.pending import read_question
from toolreeve.approval.prompt import coloured, describe
from toolreeve.cli.output import count

if TYPE_CHECKING:
    from toolreeve.approval.decision import Outcome
    from toolreeve.approval.request import Answer
    from toolreeve.record.pending import PendingStore
    from toolreeve.record.pending_table import PendingRow

POLL_SECONDS = 0.5
ARMED_SECONDS = 4.0
MOST_LISTED = 8
HELP = "↑ ↓ select   y y allow once   n n deny   Enter all answers, notes, edits   Space more   q quit"
_DANGERS = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "green", "safe": "green"}
_KEYS = {"\x1b[A": "up", "k": "up", "\x1b[B": "down", "j": "down", "\r": "open", "\n": "open", " ": "more"}

Ask = Callable[["PendingRow"], Awaitable[None]]
Decide = Callable[["PendingRow", "Answer"], Awaitable["Outcome"]]


class ApprovalScreen:
    """`ask` puts one question in the terminal's dialogue; `decide` casts an answer, and `say` is told its outcome."""

    def __init__(
        self, pending: "PendingStore", *, ask: Ask, decide: Decide, explain: Callable[["Outcome"], str]
    ) -> None:
        self._pending = pending
        self._ask = ask
        self._decide = decide
        self._explain = explain
        self._rows: Sequence[PendingRow] = ()
        self._selected = ""
        self._first_line = 0
        self._armed: tuple[str, str, float] = ("", "", 0.0)
        self._message = ""
        self._read: set[str] = set()
        """Questions whose end was in sight."""

    async def run(self, console: Console, descriptor: int) -> None:
        """Until `q` is pressed."""
        key = ""
        while key != "q":
            with Live(console=console, screen=True, auto_refresh=False) as live, _cbreak(descriptor):
                async for key in _keys(descriptor):
                    if key in ("q", "open"):
                        break
                    await self._press(key)
                    await self._refresh()
                    live.update(self.render(console, time.time()), refresh=True)
            if key == "open" and (row := self._current) is not None:
                await self._ask(row)

    async def _refresh(self) -> None:
        self._rows = await self._pending.list()
        if self._current is None and self._rows:
            self._select(self._rows[0].id)
        if (row := self._current) is not None:
            await self._pending.mark_shown(row)

    async def _press(self, key: str) -> None:
        ids = [row.id for row in self._rows]
        if key in ("up", "down") and self._selected in ids:
            at = ids.index(self._selected) + (1 if key == "down" else -1)
            self._select(ids[max(0, min(at, len(ids) - 1))])
        elif key == "more":
            self._first_line += 10
        elif key in ("y", "n") and (row := self._current) is not None:
            await self._answer(key, row)

    async def _answer(self, key: str, row: "PendingRow") -> None:
        if key == "y" and row.id not in self._read:
            self._message = "there is more of this question: Space"
            return
        now = time.monotonic()
        armed, number, until = self._armed
        if (armed, number) != (key, row.id) or now > until:
            self._armed = (key, row.id, now + ARMED_SECONDS)
            self._message = f"press {key} again to {'allow it once' if key == 'y' else 'deny it'}"
            return
        self._armed = ("", "", 0.0)
        request = read_question(row.id, row.question)
        outcome = await self._decide(row, request.allow() if key == "y" else request.deny())
        self._message = f"{row.id}: {self._explain(outcome)}"

    @property
    def _current(self) -> "PendingRow | None":
        return next((row for row in self._rows if row.id == self._selected), None)

    def _select(self, number: str) -> None:
        if number != self._selected:
            self._selected = number
            self._first_line = 0
            self._armed = ("", "", 0.0)

    def render(self, console: Console, now: float) -> RenderableType:
        """The list, the selected question and the keys. Long lines are wrapped: nothing is left out."""
        row = self._current
        head = Text(f"{count(len(self._rows), 'question')} waiting", style="bold")
        foot = [Text(self._message, style="reverse" if self._message else ""), Text(HELP, style="dim")]
        if row is None:
            return Group(head, Text("Nothing waits for approval."), *foot)
        table = self._list(now)
        room = max(3, console.height - table.row_count - 5)
        text = Text.from_ansi(coloured(describe(read_question(row.id, row.question), whole=True)))
        lines = list(text.wrap(console, console.width))
        self._first_line = min(self._first_line, max(0, len(lines) - room))
        shown = lines[self._first_line : self._first_line + room]
        rest = len(lines) - self._first_line - len(shown)
        if rest == 0:
            self._read.add(row.id)
        more = Text(f"⋯ {count(rest, 'more line')}: Space", style="dim") if rest else Text("")
        return Group(head, table, Text("─" * 40, style="dim"), *shown, more, *foot)

    def _list(self, now: float) -> Table:
        table = Table(box=None, show_header=False, padding=(0, 1), expand=True)
        for ratio in (None, None, None, 1):
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=ratio)
        ids = [row.id for row in self._rows]
        start = max(0, ids.index(self._selected) - MOST_LISTED + 1)
        for row in self._rows[start : start + MOST_LISTED]:
            danger = str(row.question["danger"])
            sentence = str(row.summary.get("sentence") or row.tool)
            style = "reverse" if row.id == self._selected else ""
            age = f"{max(0, int(now - row.asked))} s"
            table.add_row(row.id, Text(danger, _DANGERS.get(danger, "")), age, Text(sentence), style=style)
        return table


@contextlib.contextmanager
def _cbreak(descriptor: int) -> Iterator[None]:
    """Keys one by one; what was typed before does not count."""
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


async def _keys(descriptor: int) -> AsyncIterator[str]:
    """Each key that is pressed; an empty text from time to time."""
    loop = asyncio.get_running_loop()
    pressed: asyncio.Queue[bytes] = asyncio.Queue()
    loop.add_reader(descriptor, lambda: pressed.put_nowait(os.read(descriptor, 64)))
    try:
        yield ""
        while True:
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    typed = (await pressed.get()).decode(errors="replace")
            except TimeoutError:
                typed = ""
            for key in _split(typed):
                yield _KEYS.get(key, key)
            yield ""
    finally:
        loop.remove_reader(descriptor)


def _split(typed: str) -> Iterator[str]:
    while typed:
        size = 3 if typed.startswith("\x1b[") else 1
        yield typed[:size]
        typed = typed[size:]
