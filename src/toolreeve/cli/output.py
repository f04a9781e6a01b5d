"""How is an answer shown? JSON when asked for; else text, with colour only on a terminal that wants it.

What tools return may hold anything: on a terminal, characters that would move its cursor or hide text are made visible.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import click

from toolreeve.cli.options import Options, ReaderGone, on_terminal
from toolreeve.core import json
from toolreeve.core.errors import TRAITS, ConfigError, ConfigErrors, ErrorCode, ExitStatus, ToolError, ToolreeveError
from toolreeve.core.result import Failure
from toolreeve.core.visible import visible


def shown(text: str) -> str:
    """The text as a terminal may have it: what would move its cursor or hide something is spelled out."""
    return "\t".join(map(visible, text.split("\t")))


def say(text: str) -> None:
    """The answer, on stdout. On a pipe it is exact."""
    exact = shown(text) if on_terminal() else text
    with answering() as stream:
        stream.write(exact.encode("utf-8", "surrogateescape"))
        if not exact.endswith("\n"):
            stream.write(b"\n")


@contextmanager
def answering() -> Iterator[IO[bytes]]:
    """Standard output, for bytes. Raises ReaderGone when nobody reads them any more."""
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def say_json(value: Any) -> None:
    """Indented for a person on a terminal, one line for a program."""
    say(json.pretty(value) if on_terminal() else json.dumps(value).decode())


def note(text: str) -> None:
    """Something about the answer, on stderr."""
    click.echo(f"toolreeve: {shown(text)}", err=True)


def coloured(invocation: Options) -> bool:
    return (
        on_terminal() and not invocation.plain and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )


def say_table(invocation: Options, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if on_terminal():
        _rich_table(head, rows, colour=coloured(invocation))
    else:
        _plain_table(head, rows)


def show(invocation: Options, drawing: Any) -> None:
    """Something that rich draws, on a terminal."""
    from rich.console import Console

    Console(no_color=not coloured(invocation), highlight=False).print(drawing)


def _rich_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, colour: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text(visible(cell), style=_STYLES.get(cell, "")) for cell in row))
    Console(no_color=not colour, highlight=False).print(table)


_STYLES = {
    "safe": "green",
    "low": "green",
    "medium": "yellow",
    "high": "red",
    "critical": "bold red",
    "ok": "green",
    "allow": "green",
    "warn": "yellow",
    "ask": "yellow",
    "fail": "bold red",
    "deny": "red",
}


def _plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns in line; the last is never cut, and each row stays one line."""
    cells = [[re.sub(r"\s+", " ", cell).strip() for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def report(problem: Exception, invocation: Options) -> int:
    """Tell what went wrong with a command, and give the exit status for it. What nobody foresaw is a bug of ours."""
    match problem:
        case click.exceptions.NoArgsIsHelpError():
            click.echo(problem.format_message(), err=True)
            return ExitStatus.USAGE
        case click.UsageError():
            usage = f"\ntry: {problem.ctx.command_path} --help" if problem.ctx else ""
            return _fail(invocation, ErrorCode.INVALID_PARAMS, problem.format_message(), hint=usage)
        case click.ClickException():
            return _fail(invocation, ErrorCode.TOOL_EXEC, problem.format_message())
        case click.exceptions.Exit():
            return problem.exit_code
        case ConfigErrors():
            return _fail(invocation, ErrorCode.INVALID_PARAMS, str(problem), detail=list(map(_place, problem.problems)))
        case ConfigError():
            return _fail(invocation, ErrorCode.INVALID_PARAMS, str(problem), detail=[_place(problem)])
        case ToolError():
            return _fail(invocation, problem.code, problem.message, detail=problem.detail, coded=True)
        case ToolreeveError():
            return _fail(invocation, ErrorCode.TOOL_EXEC, str(problem))
        case _ if invocation.verbose:
            raise problem
        case _:
            unforeseen = f"unforeseen {type(problem).__name__}: {problem} (-v shows where)"
            return _fail(invocation, ErrorCode.TOOL_EXEC, unforeseen)


def _place(problem: ConfigError) -> dict[str, Any]:
    return {
        "source": problem.source,
        "line": problem.line,
        "key": problem.key,
        "problem": problem.problem,
        "fix": problem.fix,
    }


def _fail(
    invocation: Options,
    code: ErrorCode,
    message: str,
    *,
    hint: str = "",
    detail: Any = None,
    coded: bool = False,
) -> int:
    if invocation.json:
        failure = Failure(code, message, detail=detail, retryable=TRAITS[code].retryable)
        say_json({"success": False, "data": None, "error": failure.to_dict()})
    note((f"[{code}] " if coded else "") + message + hint)
    return TRAITS[code].exit_status
