"""`toolreeve approvals grants` and `revoke`: the approvals that hold for a session."""

import asyncio
import time
from typing import TYPE_CHECKING

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.cli.record import format_time, open_journal
from toolreeve.config.os_user import os_user_name
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolreeve.core.grants import Grant

COLUMNS = ("id", "tool", "user", "session", "client", "expires", "uses", "covers")


@click.command(cls=CliCommand)
def grants() -> int:
    """List the approvals that hold for a session, oldest first."""
    found = asyncio.run(_list_grants(current()))
    if current().json:
        print_json([grant.to_dict() for grant in found])
    elif found:
        print_table(current(), COLUMNS, list(map(_cells, found)))
    else:
        note("no grants")
    return ExitStatus.OK


@click.command(cls=CliCommand)
@click.argument("number", metavar="[ID]", required=False)
@click.option("--session", help="All grants of this session.")
@click.option("--all", "every", is_flag=True, help="All grants.")
def revoke(number: str | None, session: str | None, *, every: bool) -> int:
    """End a grant at once, in all running processes. A unique prefix of its id is enough."""
    if sum((number is not None, session is not None, every)) != 1:
        raise click.UsageError("name a grant by its ID (see `toolreeve approvals grants`), or pass --session or --all")
    count = asyncio.run(_revoke(current(), number, session))
    if current().json:
        print_json({"revoked": count})
    elif count:
        print_text(f"revoked: {count}")
    if not count:
        note("nothing was revoked: no such grant, or the prefix is ambiguous" if number else "no grants")
    return ExitStatus.NOT_FOUND if number and not count else ExitStatus.OK


async def _list_grants(options: Options) -> "Sequence[Grant]":
    """Without those of processes that were killed."""
    async with open_journal(options) as (store, journal):
        found = await store.grants(time.time).list()
        return [grant for grant in found if not grant.process or await journal.is_alive(grant.process)]


async def _revoke(options: Options, number: str | None, session: str | None) -> int:
    by = f"{os_user_name()} via command line"
    async with open_journal(options) as (store, _):
        table = store.grants(time.time)
        if number is not None:
            return int(await table.revoke(number, by=by))
        return await table.revoke_all(by=by, session=session)


def _cells(grant: "Grant") -> tuple[str, ...]:
    expires = "never" if grant.expires is None else format_time(grant.expires)
    uses = "any" if grant.uses is None else str(grant.uses)
    cells = (grant.id, grant.tool, grant.user, grant.session, grant.client or "-", expires, uses)
    return (*map(one_line, cells), one_line(grant.words))
