"""Prints a tool result: data on stdout, failures on stderr."""

from typing import TYPE_CHECKING

from toolreeve.cli.options import Options
from toolreeve.cli.output import note, print_json, print_text
from toolreeve.core.errors import TRAITS, ExitStatus

if TYPE_CHECKING:
    from toolreeve.core.result import ToolResult


def show_result(options: Options, result: "ToolResult") -> int:
    error = result.error
    if options.json:
        print_json(result.to_dict())
    elif error is None:
        print_text(result.to_text())
    else:
        note(result.to_text())
    if options.verbose:
        meta = result.meta
        verdict = meta.verdict
        note(f"call {meta.call_id}, session {meta.session}, {meta.duration_ms} ms")
        note(f"{verdict.decision.word} by {verdict.layer}" + (f": {verdict.reason}" if verdict.reason else ""))
    return ExitStatus.OK if error is None else TRAITS[error.code].exit_status
