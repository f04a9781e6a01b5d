"""`toolreeve explain`: decisions about paths, URLs and commands.

Nothing is opened, connected to or run.
"""

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from toolreeve.cli.options import CliGroup, current, on_terminal
from toolreeve.cli.output import print_rich, print_text
from toolreeve.core import json
from toolreeve.core.errors import ExitStatus


@click.group(cls=CliGroup)
def explain() -> None:
    """Explain what would be decided, without doing it."""


@explain.command()
@click.argument("values", nargs=-1, required=True, metavar="PATH... | -")
def path(values: tuple[str, ...]) -> int:
    """Whether tools may access a path.

    Readable text on a terminal, else one JSON line per path; - reads them from stdin.
    """
    from toolreeve.cli.runtime import new_workspace

    with new_workspace(current()) as workspace:
        for value in _each(values):
            _print(dataclasses.asdict(workspace.explain(value)))
    return ExitStatus.OK


@explain.command()
@click.argument("values", nargs=-1, required=True, metavar="URL... | -")
@click.option("--method", default="GET", help="The HTTP method.", show_default=True)
@click.option(
    "--resolver",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Resolve names with this hosts file instead of DNS.",
)
def url(values: tuple[str, ...], method: str, resolver: Path | None) -> int:
    """Whether tools may reach a URL.

    Readable text on a terminal, else one JSON line per URL; - reads them from stdin.
    """
    import asyncio

    asyncio.run(_explain_urls(values, method.upper(), resolver))
    return ExitStatus.OK


async def _explain_urls(values: tuple[str, ...], method: str, resolver: Path | None) -> None:
    from toolreeve.cli.runtime import new_network

    guard = new_network(current(), resolver)
    for value in _each(values):
        _print(await guard.explain(value, method=method))


@explain.command()
@click.argument("values", nargs=-1, required=True, metavar="CMD... | -")
@click.option("--cwd", type=click.Path(path_type=Path, file_okay=False), help="The command's working directory.")
def command(values: tuple[str, ...], cwd: Path | None) -> int:
    """What a shell command would do, and what is decided about it in the current mode.

    Readable text on a terminal, else one JSON line per command; - reads them from stdin.
    """
    import asyncio

    asyncio.run(_explain_commands(values, cwd))
    return ExitStatus.OK


async def _explain_commands(values: tuple[str, ...], cwd: Path | None) -> None:
    from toolreeve.cli.runtime import policy_state
    from toolreeve.policy.shell.explanation import explain, tree

    found = current().configuration()
    root = found.settings.workspace.dir
    place = {
        "cwd": str((cwd or Path(root)).absolute()),
        "home": found.home,
        "root": root,
        "state": await policy_state(found),
        "allowed": found.settings.workspace.sensitive_allow,
    }
    for value in _each(values):
        if current().json or not on_terminal():
            print_text(json.dumps(explain(value, **place)).decode())
        else:
            print_rich(current(), tree(value, **place))


def _print(finding: Mapping[str, Any]) -> None:
    if current().json or not on_terminal():
        print_text(json.dumps(finding).decode())
    else:
        value = finding["value"]
        print_text(f"{finding['decision']}  {value}: {finding['reason'].removeprefix(f'{value}: ')}")


def _each(values: tuple[str, ...]) -> Iterator[str]:
    for value in values:
        if value == "-":
            for line in sys.stdin.buffer:
                yield line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
        else:
            yield value
