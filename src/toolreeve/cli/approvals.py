"""`toolreeve approvals`: list, show and answer pending approvals.

An approval is decided once, by the first answer, and the decision is recorded. It lets one call run; the call itself is
made by its waiting caller, and judged again then. Only a person decides: after confirmation on a terminal, where the
call is shown, or with `--yes`. Nothing that runs in the sandbox can reach the pending approvals.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolreeve.cli.grants import grants, revoke
from toolreeve.cli.options import CliGroup, Options, current, on_terminal
from toolreeve.cli.output import count, note, print_json, print_table, print_text
from toolreeve.cli.record import format_time, open_journal
from toolreeve.config.os_user import os_user_name
from toolreeve.core.errors import ExitStatus

if TYPE_CHECKING:
    from toolreeve.approval.decision import Outcome
    from toolreeve.approval.request import Answer, Request, Scope
    from toolreeve.cli.approval_edit import Edit
    from toolreeve.record.pending import PendingStore
    from toolreeve.record.pending_table import PendingRow

T = TypeVar("T")
YES = "Skip the confirmation; required without a terminal."
QUESTIONS = {"once": "Allow it?", "session": "Allow it in this session?", "always": "Allow it and write the rule?"}
COLUMNS = ("id", "state", "danger", "asked", "question")
_TIME = re.compile(r"(\d+(?:\.\d+)?)([mhd])")
_UNITS = {"m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class _Terms:
    """What is allowed, and for how long."""

    scope: "Scope"
    choice: int
    expires: float | None
    uses: int | None
    only: tuple[str, ...] | None
    know: bool


def _read_time(_: click.Context, __: click.Parameter, value: str | None) -> float | None:
    """Seconds."""
    if value is None:
        return None
    found = _TIME.fullmatch(value.strip().lower())
    if found is None or float(found[1]) <= 0:
        raise click.BadParameter(f"{value!r} is not a time such as 30m, 2h or 7d")
    return float(found[1]) * _UNITS[found[2]]


@click.group(cls=CliGroup, invoke_without_command=True)
@click.option("--all", "show_all", is_flag=True, help="Include answered, used and expired ones.")
@click.pass_context
def approvals(context: click.Context, *, show_all: bool) -> int:
    """List pending approvals, oldest first; show one, answer it, or answer them as they arrive."""
    if context.invoked_subcommand is not None:
        return ExitStatus.OK
    return _print_list(show_all=show_all)


def _print_list(*, show_all: bool) -> int:
    rows = asyncio.run(_with_pending(lambda pending: pending.list(pending_only=not show_all)))
    if current().json:
        print_json([row.to_dict() for row in rows])
    elif rows:
        print_table(current(), COLUMNS, list(map(cells, rows)))
        if on_terminal() and any(row.state == "pending" for row in rows):
            note("answer with `toolreeve approvals allow ID` or `deny ID`, or as they arrive with `watch`")
    else:
        note("no pending approvals")
    return ExitStatus.OK


@approvals.command(name="list")
@click.option("--all", "show_all", is_flag=True, help="Include answered, used and expired ones.")
@click.pass_context
def list_(context: click.Context, *, show_all: bool) -> int:
    """List pending approvals, oldest first."""
    return _print_list(show_all=show_all or bool(context.parent and context.parent.params.get("show_all")))


@approvals.command()
@click.argument("number", metavar="ID")
def show(number: str) -> int:
    """Show an approval in full. A unique prefix of its id is enough."""
    from toolreeve.approval.pending import read_question
    from toolreeve.approval.prompt import describe

    row = asyncio.run(_with_pending(lambda pending: pending.find(number)))
    if row is None:
        return _unknown(number)
    if current().json:
        print_json(row.to_dict())
    else:
        print_text(describe(read_question(row.id, row.question), whole=True))
        print_text("\n".join(_facts(row)))
    return ExitStatus.OK


@approvals.command()
@click.argument("number", metavar="ID")
@click.option("--session", is_flag=True, help="Also allow the same call again in its session.")
@click.option("--always", is_flag=True, help="Also allow the same call from now on, with a rule in your policy file.")
@click.option(
    "--choice",
    type=click.IntRange(min=1),
    default=1,
    help="What --session or --always covers, by its number in `approvals show`; 1 is exactly this call.",
)
@click.option("--for", "seconds", metavar="TIME", callback=_read_time, help="How long it holds: 30m, 2h or 7d.")
@click.option("--uses", type=click.IntRange(min=2), help="How often it may run in its session, this call included.")
@click.option(
    "--only",
    multiple=True,
    metavar="PATH",
    help="Keep only what the command changes at or below this path; repeatable.",
)
@click.option("--know", is_flag=True, help="Keep the recipient as known: it is not asked about again.")
@click.option("--note", "comment", default="", help="A note for the model.")
@click.option("--yes", is_flag=True, help=YES)
def allow(
    number: str,
    comment: str,
    choice: int,
    seconds: float | None,
    uses: int | None,
    only: tuple[str, ...],
    *,
    session: bool,
    always: bool,
    know: bool,
    yes: bool,
) -> int:
    """Show the call and, after confirmation, allow it.

    --for and --uses imply --session; --always --for writes a rule that expires.
    """
    from toolreeve.approval.request import Scope

    if session and always:
        raise click.UsageError("choose --session or --always")
    if always and uses is not None:
        raise click.UsageError("--uses limits an approval for the session: a rule has no number of uses")
    scope = Scope.ONCE
    if always:
        scope = Scope.ALWAYS
    elif session or seconds is not None or uses is not None:
        scope = Scope.SESSION
    if choice > 1 and scope is Scope.ONCE:
        raise click.UsageError("--choice needs --session or --always")
    if only and scope is not Scope.ONCE:
        raise click.UsageError("--only holds for this call: leave out --session, --always, --for and --uses")
    expires = None if seconds is None else time.time() + seconds
    if scope is Scope.SESSION:
        _check_lifetime(current(), seconds)
    terms = _Terms(scope, choice - 1, expires, uses, only or None, know)
    return asyncio.run(_answer(current(), number, terms, comment, yes=yes))


@approvals.command()
@click.argument("number", metavar="ID")
@click.option("--note", "comment", default="", help="The reason, or what to do instead; the model reads it.")
@click.option("--yes", is_flag=True, help=YES)
def deny(number: str, comment: str, *, yes: bool) -> int:
    """Show the call and, after confirmation, deny it."""
    return asyncio.run(_answer(current(), number, None, comment, yes=yes))


@approvals.command()
@click.argument("number", metavar="ID")
@click.argument("changes", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--note", "comment", default="", help="A note for the model.")
@click.option("--yes", is_flag=True, help=YES)
def edit(number: str, changes: tuple[str, ...], comment: str, *, yes: bool) -> int:
    """Allow the call with other arguments: in your editor, or as given.

    The edited call is validated and judged at once, and shown with its effects before you confirm.
    """
    from toolreeve.cli.approval_edit import edit_approval

    return asyncio.run(_edit(current(), number, edit_approval, changes, comment, yes=yes))


@approvals.command()
@click.option("--limit", type=click.IntRange(1, 500), default=50, help="How many decisions, newest first.")
def history(limit: int) -> int:
    """Show who or what decided: people, policies and governors, and what is pending."""
    found = asyncio.run(_history(current(), limit))
    if current().json:
        print_json(found)
        return ExitStatus.OK
    rows = [
        (format_time(each["timestamp"]), each["source"], each["optionId"], each["metadata"]["summary"])
        for each in found["permissionDecisions"]
    ]
    if rows:
        print_table(current(), ("time", "source", "option", "question"), rows)
    for said in found["governorFeedback"]:
        print_text(f"{format_time(said['timestamp'])} governors ({said['phase']}): {said['summary']}")
    note(f"{count(len(rows), 'decision')}, {len(found['pendingPermissions'])} pending")
    return ExitStatus.OK


@approvals.command()
@click.option("--plain", is_flag=True, help="One question after the other, without a full screen.")
def watch(*, plain: bool) -> int:
    """Show what waits on this terminal, live, and answer it there."""
    from toolreeve.cli.approval_watch import watch_approvals

    return asyncio.run(watch_approvals(current(), plain=plain))


approvals.add_command(grants)
approvals.add_command(revoke)


@asynccontextmanager
async def open_pending(options: Options) -> "AsyncIterator[PendingStore]":
    from toolreeve.record.pending import PendingStore

    async with open_journal(options) as (store, _):
        yield PendingStore(store.pending, time.time)


async def _with_pending(query: "Callable[[PendingStore], Awaitable[T]]") -> T:
    async with open_pending(current()) as pending:
        return await query(pending)


async def _answer(options: Options, number: str, terms: "_Terms | None", comment: str, *, yes: bool) -> int:
    from toolreeve.approval.decision import settled
    from toolreeve.approval.pending import read_question

    async with open_pending(options) as pending:
        row = await pending.find(number)
        if row is None:
            return _unknown(number)
        if row.state != "pending":
            return _report(options, row, settled(row))
        request = read_question(row.id, row.question)
        answer = _new_answer(request, terms, comment)
        if not yes and not await _confirm(request, answer):
            note(f"{row.id} is still pending: nothing was changed")
            return ExitStatus.DENIED
        outcome = await cast(pending, row, request, answer)
        row = await pending.find(row.id) or row
    return _report(options, row, outcome)


async def cast(
    pending: "PendingStore", row: "PendingRow", request: "Request", answer: "Answer", dead_time: float = 0.0
) -> "Outcome":
    """As the operating system's user, in the role that the configuration gives them."""
    from toolreeve.approval.decision import Respondent, decide
    from toolreeve.runtime.principal import find_local_principal

    local = find_local_principal(current().configuration())
    respondent = Respondent(user=os_user_name(), channel="command line", role=local.principal.role)
    return await decide(pending, row, request, answer, respondent, now=time.time(), dead_time=dead_time)


async def _edit(
    options: Options, number: str, edit_approval: "Edit", changes: tuple[str, ...], comment: str, *, yes: bool
) -> int:
    async with open_pending(options) as pending:
        row = await pending.find(number)
        if row is None:
            return _unknown(number)
        found = await edit_approval(options, row, changes, yes=yes)
        if found is None:
            note(f"{row.id} is unchanged: nothing was decided")
            return ExitStatus.DENIED
        request, args = found
        answer = request.allow(by=f"{os_user_name()} via command line", note=comment, args=args)
        outcome = await cast(pending, row, request, answer)
        row = await pending.find(row.id) or row
    return _report(options, row, outcome)


async def _history(options: Options, limit: int) -> dict[str, Any]:
    from toolreeve.cli.approval_edit import judge_anew
    from toolreeve.core.secrets.redactor import Redactor
    from toolreeve.record.audit import Audit
    from toolreeve.runtime.approvals import Approvals

    async with open_journal(options) as (store, _):
        from toolreeve.record.pending import PendingStore

        redactor = Redactor(options.configuration().secrets)
        approvals = Approvals(
            PendingStore(store.pending, time.time),
            store.grants(time.time),
            now=time.time,
            judge_edit=partial(judge_anew, options),
            audit=Audit(store),
            redact=redactor.text,
        )
        return await approvals.history(limit=limit)


async def _confirm(request: "Request", answer: "Answer") -> bool:
    from toolreeve.approval.prompt import describe
    from toolreeve.cli.confirm import confirm

    question = QUESTIONS[answer.scope] if answer.granted else "Deny it?"
    return await confirm(question, shown=describe(request, whole=True))


def _new_answer(request: "Request", terms: "_Terms | None", comment: str) -> "Answer":
    from toolreeve.approval.always_rule import rule_text, until

    by = f"{os_user_name()} via command line"
    if terms is None:
        return request.deny(by=by, note=comment)
    choice = terms.choice
    if terms.know and not request.knowable:
        raise click.UsageError("--know: this question is about no recipient that could be kept")
    if choice >= max(1, len(request.choices)):
        raise click.UsageError(f"--choice {choice + 1} was not offered: see `toolreeve approvals show {request.id}`")
    if terms.scope == "always":
        if not request.lasting:
            raise click.UsageError("--always is not possible: there is no policy file to write the rule to")
        rule = rule_text(until(request.choices[choice].rule, terms.expires)) if request.choices else request.lasting
        note(f"this rule will be written when the call runs: {rule}")
    return request.allow(
        by=by,
        scope=terms.scope,
        note=comment,
        choice=choice,
        expires=terms.expires,
        uses=terms.uses,
        only=terms.only,
        know=terms.know,
    )


def _check_lifetime(options: Options, seconds: float | None) -> None:
    hours = options.configuration().settings.approval.session_hours
    if seconds is not None and seconds > hours * 3600:
        raise click.UsageError(
            f"--for: an approval for the session holds at most {hours:g} hours (approval.session_hours)"
        )


def _report(options: Options, row: "PendingRow", outcome: "Outcome") -> int:
    from toolreeve.approval.decision import Counted, Decided, describe

    counts = isinstance(outcome, Decided | Counted)
    if options.json:
        print_json(row.to_dict() | {"decided": isinstance(outcome, Decided)})
    elif isinstance(outcome, Counted):
        print_text(f"{row.id}: 1 of {outcome.needed} approvals given, still pending")
    elif counts:
        print_text(f"{row.id}: {row.state}")
    if not counts and row.state == "pending":
        note(f"{row.id} is still pending: {describe(outcome)}")
    elif not counts:
        note(f"{row.id} is already {_state(row)}: nothing was changed")
    return ExitStatus.OK if counts else ExitStatus.TOOL_ERROR


def _unknown(number: str) -> int:
    note(f"no approval has the id {number!r}, or the prefix is ambiguous")
    return ExitStatus.NOT_FOUND


def cells(row: "PendingRow") -> tuple[str, ...]:
    values = row.to_dict() | {"asked": format_time(row.asked), "question": row.summary.get("sentence") or row.tool}
    return tuple(str(values[column]) for column in COLUMNS)


def _facts(row: "PendingRow") -> Iterator[str]:
    yield f"  Asked: {format_time(row.asked)}"
    yield f"  State: {_state(row)}"
    if row.state == "pending":
        until = format_time(row.expires)
        yield f"  Expires: {until}; answer with `toolreeve approvals allow {row.id}` or `deny {row.id}`"


def _state(row: "PendingRow") -> str:
    by = (row.answer or {}).get("by")
    return f"{row.state} (answered by {by})" if by else row.state
