"""What would be decided about a value, and why? One line of JSON a value; nothing is touched."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from toolreeve.cli.options import CliGroup, current, on_terminal
from toolreeve.cli.output import say, show
from toolreeve.core import json
from toolreeve.core.errors import ExitStatus


@click.group(cls=CliGroup)
def explain() -> None:
    """Say what would be decided, without doing it."""


@explain.command()
@click.argument("values", nargs=-1, required=True, metavar="PATH... | -")
def path(values: tuple[str, ...]) -> int:
    """Whether tools may touch a path: a JSON line for each; - reads lines from stdin."""
    from toolreeve.cli.runtime import new_workspace

    with new_workspace(current()) as workspace:
        for value in _each(values):
            finding = workspace.explain(value)
            say(json.dumps(dataclasses.asdict(finding)).decode())
    return ExitStatus.OK


@explain.command()
@click.argument("values", nargs=-1, required=True, metavar="URL... | -")
@click.option("--method", default="GET", help="The HTTP method to ask about.", show_default=True)
@click.option(
    "--resolver",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A hosts-style file to look names up in, instead of the network.",
)
def url(values: tuple[str, ...], method: str, resolver: Path | None) -> int:
    """Whether tools may reach a URL: a JSON line for each; - reads lines from stdin."""
    import asyncio

    asyncio.run(_explain_urls(values, method.upper(), resolver))
    return ExitStatus.OK


async def _explain_urls(values: tuple[str, ...], method: str, resolver: Path | None) -> None:
    from toolreeve.cli.runtime import new_network

    guard = new_network(current(), resolver)
    for value in _each(values):
        say(json.dumps(await guard.explain(value, method=method)).decode())


@explain.command()
@click.argument("values", nargs=-1, required=True, metavar="CMD... | -")
@click.option("--cwd", type=click.Path(path_type=Path, file_okay=False), help="Where the command would run.")
def command(values: tuple[str, ...], cwd: Path | None) -> int:
    """What a shell command would do: a tree on a terminal, else a JSON line for each; - reads lines from stdin."""
    from toolreeve.policy.shell.explanation import explain, tree

    _refuse_mode(current().mode)
    root = current().configuration().settings.workspace.dir
    place = {"cwd": str((cwd or Path(root)).absolute()), "home": str(Path.home()), "root": root}
    for value in _each(values):
        if current().json or not on_terminal():
            say(json.dumps(explain(value, **place)).decode())
        else:
            show(current(), tree(value, **place))
    return ExitStatus.OK


def _refuse_mode(mode: str | None) -> None:
    """The decision that is told is that of the shipped default, whatever is configured."""
    if mode is not None:
        raise click.UsageError(
            f"--mode {mode} has no say here: what is told is what a command does, and what default mode makes of it."
            f" For the decision in another mode: toolreeve --mode {mode} policy explain bash command='…'"
        )


def _each(values: tuple[str, ...]) -> Iterator[str]:
    for value in values:
        if value == "-":
            for line in sys.stdin.buffer:
                yield line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
        else:
            yield value
