"""Result of a command, or the error that says what stopped it."""

import os
from typing import Any, NamedTuple

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, ProcessRequest
from toolreeve.sandbox import limit_report

NEVER_STARTED = b"N"


class CommandOutcome(NamedTuple):
    """`kind`: X exited; M, C and P killed for memory, CPU time and processes; F failed to start, with `errno`; T timed
    out; K the slot was killed; N the slot was dead before the command reached it. `memory_limit` and `process_limit`:
    the control group's limit was hit."""

    kind: bytes
    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    seconds: float
    errno: int = 0
    cpu_seconds: float = 0.0
    memory_limit: bool = False
    process_limit: bool = False


def build_result(
    request: ProcessRequest, outcome: CommandOutcome, tier: str, quarantined: tuple[str, ...] = ()
) -> Ended:
    """Raises ToolError for a command that did not start, or did not exit by itself."""
    if outcome.kind == b"F":
        raise ToolError(ErrorCode.TOOL_EXEC, f"{request.argv[0]!r} cannot be started: {os.strerror(outcome.errno)}")
    evidence = limit_report.LimitEvidence(
        kind=outcome.kind,
        exit_code=outcome.exit_code,
        cpu_seconds=outcome.cpu_seconds,
        stderr=outcome.stderr[-4096:],
        memory=outcome.memory_limit,
        processes=outcome.process_limit,
    )
    if limit := limit_report.enforced(request.limits, evidence):
        raise _stopped(ErrorCode.LIMIT, limit, outcome, tier, quarantined)
    if outcome.kind == b"T":
        message = f"stopped: limit of {request.limits.timeout:g} s reached (timeout)"
        raise _stopped(ErrorCode.TIMEOUT, message, outcome, tier, quarantined)
    if outcome.kind in (b"K", NEVER_STARTED):
        message = "the sandbox was terminated while the command ran"
        raise _stopped(ErrorCode.TOOL_EXEC, message, outcome, tier, quarantined)
    return Ended(
        exit_code=outcome.exit_code,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        truncated=outcome.truncated,
        sandbox=tier,
        seconds=outcome.seconds,
        limit_hit=limit_report.suspected(request.limits, evidence),
        quarantined=quarantined,
    )


def _stopped(
    code: ErrorCode, message: str, outcome: CommandOutcome, tier: str, quarantined: tuple[str, ...]
) -> ToolError:
    data = {
        "stdout": outcome.stdout.decode(errors="replace"),
        "stderr": outcome.stderr.decode(errors="replace"),
        "exit_code": outcome.exit_code,
    }
    meta: dict[str, Any] = {"sandbox": tier, "truncated": outcome.truncated}
    if quarantined:
        meta["quarantined"] = list(quarantined)
    return ToolError(code, message, data=data, meta=meta)
