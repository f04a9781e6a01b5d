"""What does a result say to a shell? Data on stdout, a failure on stderr with its suggestions, and an exit status."""

from typing import TYPE_CHECKING

from toolreeve.cli.options import Options
from toolreeve.cli.output import note, say, say_json
from toolreeve.core.errors import TRAITS, ExitStatus

if TYPE_CHECKING:
    from toolreeve.core.result import ToolResult


def show_result(invocation: Options, result: "ToolResult") -> int:
    error = result.error
    if invocation.json:
        say_json(result.to_dict())
    elif error is None:
        say(result.to_text())
    else:
        note(result.to_text())
    if invocation.verbose:
        meta = result.meta
        verdict = meta.verdict
        note(f"call {meta.call_id}, session {meta.session}, {meta.duration_ms} ms")
        note(f"{verdict.decision.word} by {verdict.layer}" + (f": {verdict.reason}" if verdict.reason else ""))
    return ExitStatus.OK if error is None else TRAITS[error.code].exit_status
