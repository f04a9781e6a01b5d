"""`toolreeve explain command`: what a shell command would do, without running it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from toolreeve.core import json


@click.command("command")
@click.argument("commands", nargs=-1, metavar="[CMD… | -]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, also on a terminal.")
@click.option(
    "--cwd", type=click.Path(path_type=Path, file_okay=False), default=None, help="Where the command would run."
)
def command(commands: tuple[str, ...], *, as_json: bool, cwd: Path | None) -> None:
    """Tell what each CMD would do and what the shipped policy decides; `-` reads one a line from standard input."""
    from toolreeve.policy.shell.explaining import explain, tree

    here = str((cwd or Path.cwd()).absolute())
    home = str(Path.home())
    for text in _given(commands):
        if as_json or not sys.stdout.isatty():
            click.echo(json.dumps(explain(text, cwd=here, home=home, root=here)).decode())
        else:
            from rich.console import Console

            Console().print(tree(text, cwd=here, home=home, root=here))


def _given(commands: tuple[str, ...]) -> Iterator[str]:
    if not commands:
        raise click.UsageError("give a command, or - to read them from standard input")
    for text in commands:
        if text == "-":
            yield from (line.rstrip("\n") for line in sys.stdin)
        else:
            yield text
