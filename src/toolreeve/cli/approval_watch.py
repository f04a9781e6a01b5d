"""`toolreeve approvals watch`: answers questions on this terminal as they arrive."""

import asyncio
import os
import sys
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from toolreeve.cli.approvals import COLUMNS, cast, cells, open_pending
from toolreeve.cli.options import Options
from toolreeve.cli.output import note, print_table
from toolreeve.config.os_user import os_user_name
from toolreeve.core.errors import ExitStatus

if TYPE_CHECKING:
    from toolreeve.approval.channels.terminal import TerminalChannel
    from toolreeve.approval.decision import Outcome
    from toolreeve.approval.request import Answer
    from toolreeve.record.pending import PendingStore
    from toolreeve.record.pending_table import PendingRow

POLL_INTERVAL = 0.5


async def watch_approvals(options: Options, *, plain: bool) -> int:
    """`plain` asks line by line, as does a terminal that cannot do more."""
    from toolreeve.approval.channels.tty import Hangup
    from toolreeve.cli.approval_edit import judge_anew
    from toolreeve.runtime.channels import new_terminal_channel

    terminal = new_terminal_channel(os.environ)
    terminal.judge_edit = partial(judge_anew, options)
    if not terminal.available():
        raise click.UsageError("no terminal to ask on: list pending approvals with `toolreeve approvals`")
    is_plain = plain or not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM", "dumb") == "dumb"
    async with open_pending(options) as pending:
        try:
            await (_ask_each(options, pending, terminal) if is_plain else _show(options, pending, terminal))
        except Hangup as problem:
            note(str(problem))
            return ExitStatus.UNAVAILABLE
    return ExitStatus.OK


async def _show(options: Options, pending: "PendingStore", terminal: "TerminalChannel") -> None:
    from rich.console import Console

    from toolreeve.approval.decision import Decided, describe
    from toolreeve.cli.approval_screen import ApprovalScreen

    dead_time = options.configuration().settings.approval.dead_time

    async def decide(row: "PendingRow", answer: "Answer") -> "Outcome":
        return await _decide(pending, row, answer, dead_time)

    def explain(outcome: "Outcome") -> str:
        return outcome.state if isinstance(outcome, Decided) else f"not decided: {describe(outcome)}"

    screen = ApprovalScreen(pending, ask=lambda row: _ask(pending, row, terminal), decide=decide, explain=explain)
    await screen.run(Console(highlight=False), sys.stdin.fileno())


async def _decide(pending: "PendingStore", row: "PendingRow", answer: "Answer", dead_time: float = 0.0) -> "Outcome":
    from toolreeve.approval.pending import read_question

    signed = replace(answer, by=f"{os_user_name()} via terminal")
    return await cast(pending, row, read_question(row.id, row.question), signed, dead_time)


async def _ask(pending: "PendingStore", row: "PendingRow", terminal: "TerminalChannel") -> None:
    """Until it is answered here, answered elsewhere, or expired."""
    from toolreeve.approval.decision import Decided, describe
    from toolreeve.approval.pending import read_question

    asking = asyncio.create_task(terminal.ask(read_question(row.id, row.question)))
    ending = asyncio.create_task(pending.wait(row.id, timeout=max(0.0, row.expires - time.time())))
    try:
        await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            outcome = await _decide(pending, row, asking.result())
            if not isinstance(outcome, Decided):
                note(f"{row.id} is not decided: {describe(outcome)}")
    finally:
        why = await _why_withdrawn(pending, row)
        for task in (asking, ending):
            task.cancel(why)
        await asyncio.wait({asking, ending})


async def _why_withdrawn(pending: "PendingStore", row: "PendingRow") -> str:
    found = await pending.find(row.id)
    by = (found.answer or {}).get("by") if found is not None else None
    return f"answered by {by}" if by else "expired, or no longer needed"


async def _ask_each(options: Options, pending: "PendingStore", terminal: "TerminalChannel") -> None:
    note("waiting for approval requests; press ^C to stop")
    while True:
        rows = await pending.list()
        if len(rows) > 1:
            note(f"{len(rows)} questions wait:")
            print_table(options, COLUMNS, list(map(cells, rows)))
        for row in rows:
            await _ask(pending, row, terminal)
        await asyncio.sleep(POLL_INTERVAL)
