"""The ending of a command, as its caller sees it: a result, or the error that says why it was ended."""

import os
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, ProcessRequest
from toolreeve.sandbox import limit_report
from toolreeve.sandbox.command import NEVER_STARTED, CommandOutcome


def ended(request: ProcessRequest, outcome: CommandOutcome, tier: str, quarantined: tuple[str, ...]) -> Ended:
    """What came of it, or the error that says why it was ended."""
    limits = request.limits
    meta: dict[str, Any] = {"sandbox": tier, "truncated": outcome.truncated}
    if quarantined:
        meta["quarantined"] = list(quarantined)
    code = 128 + outcome.status if outcome.kind == b"F" else os.waitstatus_to_exitcode(outcome.status)
    evidence = limit_report.LimitEvidence(
        kind=outcome.kind,
        exit_code=code,
        cpu_seconds=outcome.cpu_seconds,
        stderr=outcome.stderr[-4096:],
        memory=outcome.memory_met,
        processes=outcome.processes_met,
    )
    if outcome.kind == b"F":
        raise ToolError(ErrorCode.TOOL_EXEC, f"{request.argv[0]!r} cannot be started: {os.strerror(outcome.status)}")
    if limit := limit_report.enforced(limits, evidence):
        raise ToolError(ErrorCode.LIMIT, limit, data=_remains(outcome, code), meta=meta)
    if outcome.kind == b"T":
        message = f"the command did not end within {limits.timeout:g} s and was killed"
        raise ToolError(ErrorCode.TIMEOUT, message, data=_remains(outcome, code), meta=meta)
    if outcome.kind in (b"K", NEVER_STARTED):
        raise ToolError(
            ErrorCode.TOOL_EXEC,
            "the sandbox ended under the command",
            data=_remains(outcome, code),
            meta=meta,
        )
    return Ended(
        exit_code=code,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        truncated=outcome.truncated,
        sandbox=tier,
        seconds=outcome.seconds,
        breach=limit_report.met(limits, evidence),
        quarantined=quarantined,
    )


def _remains(outcome: CommandOutcome, code: int) -> dict[str, Any]:
    return {
        "stdout": outcome.stdout.decode(errors="replace"),
        "stderr": outcome.stderr.decode(errors="replace"),
        "exit_code": code,
    }
