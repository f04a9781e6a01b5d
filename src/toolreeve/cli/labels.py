"""`toolreeve labels`: what a person vouches for, and recipients that are known.

Declassifying is a person's act: no tool offers it, and each one is recorded with who did it.
"""

import asyncio
import time

import click

from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.cli.record import format_time, open_journal
from toolreeve.config.os_user import os_user_name
from toolreeve.core.call import LOCAL, new_id
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line
from toolreeve.record.flow_facts import FactKind, FlowFact

COLUMNS = ("id", "kind", "user", "session", "tool", "parameter", "value", "by", "expires")
DAY = 86_400.0
_user = click.option("--user", default=LOCAL.user, show_default=True, help="The user of the calls.")


@click.group(cls=CliGroup)
def labels() -> None:
    """Vouch for values in a session, and manage known recipients."""


@labels.command("list")
def list_facts() -> int:
    """List what people vouched for, oldest first."""
    found = asyncio.run(_list(current()))
    if current().json:
        print_json([fact.to_dict() for fact in found])
    elif found:
        print_table(current(), COLUMNS, [_cells(fact) for fact in found])
    else:
        note("nothing is vouched for")
    return ExitStatus.OK


@labels.command()
@click.argument("session")
@click.argument("value", required=False)
@click.option("--call", "call_id", metavar="ID", help="Instead of a value: the result of this call.")
@click.option("--hours", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True)
@_user
def trust(session: str, value: str | None, call_id: str | None, hours: float, user: str) -> int:
    """Vouch for VALUE, or for what a call returned, in SESSION. Payments, commands and secrets still ask."""
    from toolreeve.policy.flow.matching import canonical

    if (value is None) == (call_id is None):
        raise click.UsageError("name a VALUE, or pass --call ID")
    kind = FactKind.SOURCE if call_id else FactKind.TRUSTED
    fact = _fact(kind, call_id or canonical(value), user=user, hours=hours, session=session)
    asyncio.run(_add(current(), fact))
    return _report(fact)


@labels.command()
@click.argument("tool")
@click.argument("parameter")
@click.argument("value")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="Until when; policy.known_days by default.")
@_user
def know(tool: str, parameter: str, value: str, days: float | None, user: str) -> int:
    """Keep VALUE as a known recipient for PARAMETER of TOOL, in every session of the user."""
    from toolreeve.policy.flow.matching import canonical

    days = current().configuration().settings.policy.known_days if days is None else days
    fact = _fact(FactKind.KNOWN, canonical(value), user=user, hours=days * 24, tool=tool, parameter=parameter)
    asyncio.run(_add(current(), fact))
    return _report(fact)


@labels.command()
@click.argument("number", metavar="ID")
def revoke(number: str) -> int:
    """Take it back, in all running processes within a second. A unique prefix of the id is enough."""
    found = asyncio.run(_revoke(current(), number))
    if found is None:
        note("nothing was revoked: no such id, or the prefix is ambiguous (see `toolreeve labels list`)")
        return ExitStatus.NOT_FOUND
    print_text(f"revoked: {found.id}")
    return ExitStatus.OK


def _fact(kind: FactKind, value: str, *, user: str, hours: float, **more: str) -> FlowFact:
    now = time.time()
    by = f"{os_user_name()} via command line"
    return FlowFact(id=new_id(), kind=kind, user=user, value=value, by=by, at=now, expires=now + hours * 3600, **more)


def _report(fact: FlowFact) -> int:
    if current().json:
        print_json(fact.to_dict())
    else:
        until = "" if fact.expires is None else f" until {format_time(fact.expires)}"
        print_text(f"{fact.kind}: {one_line(fact.value)}{until}; take it back: toolreeve labels revoke {fact.id}")
    return ExitStatus.OK


def _cells(fact: FlowFact) -> tuple[str, ...]:
    expires = "never" if fact.expires is None else format_time(fact.expires)
    cells = (fact.id, str(fact.kind), fact.user, fact.session or "-", fact.tool or "-", fact.parameter or "-")
    return (*map(one_line, (*cells, fact.value, fact.by)), expires)


async def _list(options: Options) -> list[FlowFact]:
    async with open_journal(options) as (store, _):
        return list(await store.flow_facts(time.time).list())


async def _add(options: Options, fact: FlowFact) -> None:
    async with open_journal(options) as (store, _):
        await store.flow_facts(time.time).add([fact])


async def _revoke(options: Options, number: str) -> FlowFact | None:
    async with open_journal(options) as (store, _):
        return await store.flow_facts(time.time).revoke(number, by=f"{os_user_name()} via command line")
