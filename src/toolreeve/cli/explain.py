"""What would be decided about a value, and why? One line of JSON a value; nothing is touched."""

import dataclasses
import sys
from collections.abc import Iterator

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


def _each(values: tuple[str, ...]) -> Iterator[str]:
    for value in values:
        if value == "-":
            for line in sys.stdin.buffer:
                yield line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
        else:
            yield value
