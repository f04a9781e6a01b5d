"""What would be decided about a value, and why? One line of JSON a value; nothing is touched."""

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from toolreeve.cli.invocation import Group, current
from toolreeve.cli.output import say
from toolreeve.core import json
from toolreeve.core.errors import ExitStatus


@click.group(cls=Group)
def explain() -> None:
    """Say what would be decided, without doing it."""


@explain.command()
@click.argument("values", nargs=-1, required=True, metavar="PATH... | -")
def path(values: tuple[str, ...]) -> int:
    """Whether tools may touch a path: a JSON line for each; - reads lines from stdin."""
    from toolreeve.cli.world import new_workspace

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
    from toolreeve.cli.world import new_network
    from toolreeve.guard.explain import explain_url

    guard = new_network(current(), resolver)
    for value in _each(values):
        say(json.dumps(await explain_url(guard, value, method=method)).decode())


def _each(values: tuple[str, ...]) -> Iterator[str]:
    for value in values:
        if value == "-":
            for line in sys.stdin.buffer:
                yield line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
        else:
            yield value
