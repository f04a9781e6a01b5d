"""Prints a tool result: data on stdout, failures on stderr."""

from typing import TYPE_CHECKING

from toolreeve.cli.options import Options
from toolreeve.cli.output import note, print_json, print_text
from toolreeve.core.errors import TRAITS, ExitStatus
from toolreeve.core.result import UNDECIDED
from toolreeve.core.result_text import printed_parts, readable

if TYPE_CHECKING:
    from toolreeve.core.result import ToolResult


def show_result(options: Options, result: "ToolResult") -> int:
    error = result.error
    if options.json:
        print_json(result.to_dict())
    elif error is None:
        _print_success(result)
    else:
        note(result.to_text(whole=True))
    if options.verbose:
        meta = result.meta
        verdict = meta.verdict
        waited = f", after waiting {meta.waited_ms} ms for approval" if meta.waited_ms else ""
        note(f"call {meta.call_id}, session {meta.session}, {meta.duration_ms} ms{waited}")
        note(
            "not decided"
            if verdict is UNDECIDED
            else f"{verdict.decision.word} by {verdict.layer}" + (f": {verdict.reason}" if verdict.reason else "")
        )
    return ExitStatus.OK if error is None else TRAITS[error.code].exit_status


def _print_success(result: "ToolResult") -> None:
    """What a program printed goes to the stream it was printed on, in order; that on stderr is marked."""
    if not result.has_stderr() and not result.meta.notices:
        print_text(result.to_text(whole=True))
        return
    if not result.has_stderr():
        print_text(readable(result.output))
    for stream, text in printed_parts(result.data, result.meta.order) if result.has_stderr() else ():
        if stream == "stdout":
            print_text(text)
        else:
            note(f"stderr:\n{text.rstrip()}")
    for notice in (*result.meta.notices, *(["the output is truncated"] if result.meta.truncated else ())):
        note(notice)
