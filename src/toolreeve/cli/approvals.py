"""`toolreeve approvals`: pending approvals, listed, shown and decided.

A decision is made once, by whoever is first, and is on record. It lets one call run; the call itself is made by whoever
waits for it, and judged again then. It is a person's: asked on a terminal, where the call is shown, unless they say
`--yes`; and nothing that runs in the sandbox can reach the questions.
"""

import asyncio
import getpass
import os
import shlex
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliGroup, Options, current, on_terminal
from toolreeve.cli.output import note, say, say_json, say_table
from toolreeve.core.errors import ExitStatus

if TYPE_CHECKING:
    from toolreeve.approval.channels.terminal import TerminalChannel
    from toolreeve.approval.request import Answer, Request, Scope
    from toolreeve.record.journal import Journal
    from toolreeve.record.pending import PendingRow, PendingStore
    from toolreeve.record.store import Store

LOOK_EVERY = 0.5
YES = "Do not ask; needed where there is no terminal to ask on."
QUESTIONS = {"once": "Allow it?", "session": "Allow it in this session?", "always": "Allow it, and write the rule?"}
COLUMNS = ("id", "state", "tool", "danger", "user", "asked", "reason")


@click.group(cls=CliGroup, invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Also those that are answered, used or expired.")
@click.pass_context
def approvals(context: click.Context, *, everything: bool) -> int:
    """List the questions that wait, oldest first; show one, answer it, or answer them as they come."""
    if context.invoked_subcommand is not None:
        return ExitStatus.OK
    matters = asyncio.run(_list(current(), pending_only=not everything))
    if current().json:
        say_json([matter.to_dict() for matter in matters])
    elif matters:
        say_table(current(), COLUMNS, list(map(_row, matters)))
        if on_terminal() and any(matter.state == "pending" for matter in matters):
            note("answer one with `toolreeve approvals allow ID` or `deny ID`, or each as it comes with `watch`")
    else:
        note("nothing waits for an answer")
    return ExitStatus.OK


@approvals.command()
@click.argument("number", metavar="ID")
def show(number: str) -> int:
    """Show a question whole. The beginning of its id is enough, if no other begins so."""
    from toolreeve.approval.pending import read_question
    from toolreeve.approval.prompt import describe

    matter = asyncio.run(_find(current(), number))
    if matter is None:
        return _unknown(number)
    if current().json:
        say_json(matter.to_dict())
    else:
        say(describe(read_question(matter.id, matter.question), whole=True))
        say("\n".join(_facts(matter)))
    return ExitStatus.OK


@approvals.command()
@click.argument("number", metavar="ID")
@click.option("--session", is_flag=True, help="Also the same thing again, in the same session.")
@click.option("--always", is_flag=True, help="Also the same thing again, by a rule in your policy file.")
@click.option("--note", "remark", default="", help="Something that the model reads.")
@click.option("--yes", is_flag=True, help=YES)
def allow(number: str, remark: str, *, session: bool, always: bool, yes: bool) -> int:
    """Show the call and, if you say yes, let it run once it is waited for."""
    from toolreeve.approval.request import Scope

    if session and always:
        raise click.UsageError("choose --session or --always")
    scope = Scope.ALWAYS if always else Scope.SESSION if session else Scope.ONCE
    return asyncio.run(_answer(current(), number, scope, remark, yes=yes))


@approvals.command()
@click.argument("number", metavar="ID")
@click.option("--note", "remark", default="", help="Why, or what to do instead; the model reads it.")
@click.option("--yes", is_flag=True, help=YES)
def deny(number: str, remark: str, *, yes: bool) -> int:
    """Show the call and, if you say yes, refuse it."""
    return asyncio.run(_answer(current(), number, None, remark, yes=yes))


@approvals.command()
def watch() -> int:
    """Ask on this terminal, as the questions come, until interrupted."""
    return asyncio.run(_watch(current()))


@asynccontextmanager
async def open_journal(invocation: Options) -> "AsyncIterator[tuple[Store, Journal]]":
    """The record, opened to be written to."""
    from toolreeve.config.xdg import DATABASE
    from toolreeve.core.secrets.redactor import Redactor
    from toolreeve.record.journal import Journal
    from toolreeve.record.store import Store

    configuration = invocation.configuration()
    store = Store(Path(configuration.settings.state.dir) / DATABASE)
    journal = Journal(store, Redactor(configuration.secrets), time.time)
    await store.start()
    try:
        await journal.start()
        try:
            yield store, journal
        finally:
            await journal.stop()
    finally:
        await store.close()


@asynccontextmanager
async def _open(invocation: Options) -> "AsyncIterator[PendingStore]":
    from toolreeve.record.pending import PendingStore

    async with open_journal(invocation) as (store, journal):
        yield PendingStore(store, time.time, journal=journal)


async def _list(invocation: Options, *, pending_only: bool) -> "Sequence[PendingRow]":
    async with _open(invocation) as found:
        return await found.list(pending_only=pending_only)


async def _find(invocation: Options, number: str) -> "PendingRow | None":
    async with _open(invocation) as found:
        return await found.find(number)


async def _answer(invocation: Options, number: str, scope: "Scope | None", remark: str, *, yes: bool) -> int:
    from toolreeve.approval.pending import read_question, write_answer

    async with _open(invocation) as found:
        matter = await found.find(number)
        if matter is None:
            return _unknown(number)
        if matter.state != "pending":
            return _tell(invocation, matter, done=False)
        request = read_question(matter.id, matter.question)
        answer = _said(request, scope, remark)
        if not yes and not await _confirmed(request, answer):
            note(f"{matter.id} still waits: nothing was changed")
            return ExitStatus.DENIED
        done = await found.decide(matter.id, write_answer(answer))
        matter = await found.find(matter.id) or matter
    return _tell(invocation, matter, done=done)


async def _confirmed(request: "Request", answer: "Answer") -> bool:
    from toolreeve.approval.prompt import describe
    from toolreeve.cli.confirm import confirmed

    question = QUESTIONS[answer.scope] if answer.granted else "Refuse it?"
    return await confirmed(question, shown=describe(request, whole=True))


def _said(request: "Request", scope: "Scope | None", remark: str) -> "Answer":
    by = f"{me()} via command line"
    if scope is None:
        return request.deny(by=by, note=remark)
    if scope == "always":
        if not request.lasting:
            raise click.UsageError("this cannot be allowed for always: there is no policy file to write to")
        note(f"this rule will be written when the call is made: {request.lasting}")
    return request.allow(by=by, scope=scope, note=remark)


def _tell(invocation: Options, matter: "PendingRow", *, done: bool) -> int:
    if invocation.json:
        say_json(matter.to_dict() | {"decided": done})
    elif done:
        say(f"{matter.id}: {matter.state}")
    if not done:
        note(f"{matter.id} is {_state(matter)} already: nothing was changed")
    return ExitStatus.OK if done else ExitStatus.TOOL_ERROR


def _unknown(number: str) -> int:
    note(f"no question has the id {number!r}, or several begin so")
    return ExitStatus.NOT_FOUND


async def _watch(invocation: Options) -> int:
    from toolreeve.approval.channels.terminal import TerminalChannel
    from toolreeve.approval.channels.tty import Hangup

    terminal = TerminalChannel(editor=shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""))
    if not terminal.available():
        raise click.UsageError("there is no terminal to ask on; see `toolreeve approvals`")
    note("questions are asked here as they come; ^C ends that")
    async with _open(invocation) as found:
        try:
            while True:
                for matter in await found.list():
                    await _ask_about(found, matter, terminal)
                await asyncio.sleep(LOOK_EVERY)
        except Hangup as problem:
            note(str(problem))
            return ExitStatus.UNAVAILABLE


async def _ask_about(found: "PendingStore", matter: "PendingRow", terminal: "TerminalChannel") -> None:
    """Until it is answered here, answered elsewhere, or out of time."""
    from toolreeve.approval.pending import read_question, write_answer

    asking = asyncio.create_task(terminal.ask(read_question(matter.id, matter.question)))
    ending = asyncio.create_task(found.wait(matter.id, timeout=max(0.0, matter.expires - time.time())))
    try:
        await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            answer = replace(asking.result(), by=f"{me()} via terminal")
            if not await found.decide(matter.id, write_answer(answer)):
                note(f"{matter.id} was answered elsewhere, or too late: nothing was changed")
    finally:
        for task in (asking, ending):
            task.cancel()
        await asyncio.wait({asking, ending})


def me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as containers have
        return f"user {os.getuid()}"


def _row(matter: "PendingRow") -> tuple[str, ...]:
    told = matter.to_dict() | {"asked": _time(matter.asked)}
    return tuple(str(told[column]) for column in COLUMNS)


def _facts(matter: "PendingRow") -> Iterator[str]:
    yield f"  Asked: {_time(matter.asked)}"
    yield f"  State: {_state(matter)}"
    if matter.state == "pending":
        yield f"  Waits until {_time(matter.expires)} for `toolreeve approvals allow {matter.id}` or `deny {matter.id}`"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _state(matter: "PendingRow") -> str:
    by = (matter.answer or {}).get("by")
    return f"{matter.state} (answered by {by})" if by else matter.state
