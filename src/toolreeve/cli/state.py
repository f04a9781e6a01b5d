"""`toolreeve state`: where the state is kept, and moving it to PostgreSQL."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from toolreeve.cli.options import CliGroup, current
from toolreeve.cli.output import count, note, print_json, print_table, print_text
from toolreeve.core.errors import ExitStatus, ToolreeveError

COMPARED = ("version", "config", "policy")


@click.group(cls=CliGroup)
def state() -> None:
    """Show where the state is kept, and move it to a database that several gateways share."""


@state.command()
def show() -> int:
    """Show where the state is kept, and which gateways share it: their versions, settings and policies."""
    place, gateways = asyncio.run(_show())
    if current().json:
        print_json({"place": place, "gateways": gateways, "mixed": find_mixed(gateways)})
        return ExitStatus.OK
    print_text(f"record in {place}")
    rows = [
        (each["name"][:8], each["host"], str(each["process"]), *(each.get(name, "") for name in COMPARED), _state(each))
        for each in gateways
    ]
    if rows:
        print_table(current(), ("gateway", "host", "process", *COMPARED, "state"), rows)
    if mixed := find_mixed(gateways):
        note(f"the gateways differ in {' and '.join(mixed)}: the same call may be decided otherwise elsewhere")
    return ExitStatus.OK


def find_mixed(gateways: Sequence[Mapping[str, Any]]) -> list[str]:
    """In what the gateways that are alive differ."""
    alive = [each for each in gateways if each["alive"]]
    return [name for name in COMPARED if len({each.get(name, "") for each in alive}) > 1]


def _state(gateway: Mapping[str, Any]) -> str:
    return "alive" if gateway["alive"] else "dead: its open calls are being closed as lost"


async def _show() -> tuple[str, Sequence[Mapping[str, Any]]]:
    from toolreeve.runtime.store import configured_store

    store = configured_store(current().configuration(), read_only=True)
    if not store.has_begun:
        return store.place, ()
    async with store:
        return store.place, await store.gateways()


@state.command()
def migrate() -> int:
    """Copy the SQLite file of state.dir into the empty PostgreSQL database of state.url, and verify the copy.

    Nothing is removed. Stop all processes that use the file first.
    """
    done = asyncio.run(_migrate())
    if current().json:
        print_json(done)
    else:
        print_text(
            f"{count(done['records'], 'record')}, {count(done['rows'], 'row')} copied to {done['to']}, and verified"
        )
        print_text(f"head {done['head']}")
    return ExitStatus.OK


async def _migrate() -> dict[str, Any]:
    from toolreeve.cli.record import open_journal
    from toolreeve.config.os_user import os_user_name
    from toolreeve.config.xdg import DATABASE
    from toolreeve.record.migration import MIGRATED, migrate_state
    from toolreeve.runtime.store import configured_store

    configuration = current().configuration()
    path = Path(configuration.settings.state.dir) / DATABASE
    if not configuration.settings.state.url:
        raise ToolreeveError("set state.url to the PostgreSQL database that the state is to move to")
    if not path.exists():
        raise ToolreeveError(f"nothing to migrate: {path} does not exist")
    async with configured_store(configuration) as store:
        done = await migrate_state(path, store)
        found = {"from": str(path), "to": store.place, "records": done.records, "rows": done.rows}
    async with open_journal(current()) as (_, journal):
        await journal.note(MIGRATED, {**found, "user": os_user_name()})
    return {**found, "head": done.head.hash.hex()}
