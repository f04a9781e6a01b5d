"""Output of commands: JSON on request, else text and tables.

Tools may return anything: on a terminal, characters that would move the cursor or hide text are made visible. Color is
for terminals that want it.
"""

import logging
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


def _safe(text: str) -> str:
    """The text as a terminal may show it: control characters are spelled out, except tabs."""
    return "\t".join(map(visible, text.split("\t")))


def print_text(text: str) -> None:
    """Prints a result on stdout; byte for byte on a pipe, and nothing for an empty one."""
    shown = _safe(text) if on_terminal() else text
    with binary_stdout() as stream:
        stream.write(_encoded(shown))
        if shown and not shown.endswith("\n"):
            stream.write(b"\n")


def _encoded(text: str) -> bytes:
    """Bytes that a program printed are passed on as they are; a lone surrogate, which is none, becomes `?`."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


@contextmanager
def binary_stdout() -> Iterator[IO[bytes]]:
    """Raises ReaderGone when the reader has closed the pipe."""
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGone from None


def print_json(value: Any) -> None:
    """Indented on a terminal, one line on a pipe."""
    print_text(json.pretty(value) if on_terminal() else json.dumps(value).decode())


def note(text: str) -> None:
    """Prints a note about the result on stderr."""
    click.echo(f"toolreeve: {_encoded(_safe(text)).decode(errors='replace')}", err=True)


class LogNotes(logging.Handler):
    """Warnings of our own and of libraries, as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(self.format(record))


@contextmanager
def live_line(text: str) -> Iterator[None]:
    """On a terminal, shows what is being waited for, if anything, and erases it afterwards."""
    if not (text and on_terminal() and sys.stderr.isatty()):
        yield
        return
    click.echo(f"{_safe(text)} …", err=True, nl=False)
    try:
        yield
    finally:
        click.echo("\r\x1b[K", err=True, nl=False)


def count(number: int, noun: str) -> str:
    """`1 rule`, `2 rules`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def uses_color(options: Options) -> bool:
    if options.plain or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return on_terminal()


def print_table(options: Options, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if on_terminal():
        _rich_table(head, rows, color=uses_color(options))
    else:
        _plain_table(head, rows)


def print_rich(options: Options, renderable: Any) -> None:
    from rich.console import Console

    Console(no_color=not uses_color(options), highlight=False).print(renderable)


def _rich_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, color: bool) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text(visible(cell), style=_STYLES.get(cell, "")) for cell in row))
    Console(no_color=not color, highlight=False).print(table)


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
    """Aligned columns; each row is one line, and the last column is never cut."""
    cells = [[re.sub(r"\s+", " ", cell).strip() for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        print_text("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def report(problem: Exception, options: Options) -> int:
    """Prints the error of a command and returns its exit code. An unexpected exception is a bug of ours."""
    match problem:
        case click.exceptions.NoArgsIsHelpError():
            click.echo(problem.format_message(), err=True)
            return ExitStatus.USAGE
        case click.UsageError():
            usage = f"\ntry: {problem.ctx.command_path} --help" if problem.ctx else ""
            return _fail(options, ErrorCode.INVALID_PARAMS, problem.format_message(), hint=usage)
        case click.ClickException():
            return _fail(options, ErrorCode.TOOL_EXEC, problem.format_message())
        case click.exceptions.Exit():
            return problem.exit_code
        case ConfigErrors():
            detail = list(map(_as_dict, problem.problems))
            return _fail(options, ErrorCode.INVALID_PARAMS, str(problem), detail=detail)
        case ConfigError():
            return _fail(options, ErrorCode.INVALID_PARAMS, str(problem), detail=[_as_dict(problem)])
        case ToolError():
            return _fail(options, problem.code, problem.message, detail=problem.detail, coded=True)
        case ToolreeveError():
            return _fail(options, problem.code, str(problem))
        case _ if options.verbose:
            raise problem
        case _:
            internal = f"internal error: {type(problem).__name__}: {problem} (-v shows the traceback)"
            return _fail(options, ErrorCode.TOOL_EXEC, internal)


def _as_dict(problem: ConfigError) -> dict[str, Any]:
    return {
        "source": problem.source,
        "line": problem.line,
        "key": problem.key,
        "problem": problem.problem,
        "fix": problem.fix,
    }


def _fail(
    options: Options,
    code: ErrorCode,
    message: str,
    *,
    hint: str = "",
    detail: Any = None,
    coded: bool = False,
) -> int:
    if options.json:
        failure = Failure(code, message, detail=detail, retryable=TRAITS[code].retryable)
        print_json({"success": False, "data": None, "error": failure.to_dict()})
    note((f"[{code}] " if coded else "") + message + hint)
    return TRAITS[code].exit_status
