"""Process helpers of the tools: requests for `Context.processes`, and their results.

Output is reported as progress while it arrives; a non-zero exit status is a failure that keeps everything the program
printed.
"""

import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.failure_reason import find_reason
from toolreeve.core.files import Kind
from toolreeve.core.process import (
    Ended,
    LimitSettings,
    OnOutput,
    PrintedOrder,
    ProcessLimits,
    ProcessRequest,
    Stream,
    new_decoders,
)

MAX_SECONDS = 3600.0
MARGIN = 30.0
"""Seconds the runtime waits beyond the command's own timeout, so that the command's end is what is reported."""

_OUTPUT_KB = 4 * 1024
_REASON_BYTES = 65536
FROM_FILE = "run it again with its output in a file of the workspace, and read that"
_SETTINGS = LimitSettings(
    memory_mb="commands.memory_mb",
    cpu_seconds="4 times the timeout",
    file_size_mb="",
    open_files="",
    processes="commands.processes",
)

_PLAIN_OUTPUT: Mapping[str, str] = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "NO_COLOR": "1"}
_NO_RETRIES: Mapping[str, str] = {
    **dict.fromkeys(("npm_config_fetch_retries", "CARGO_NET_RETRY", "UV_HTTP_RETRIES", "YARN_HTTP_RETRY"), "0"),
    "PIP_RETRIES": "1",  # with none, pip does not say why it failed
}
"""Without a network a package manager fails at once, instead of trying again for minutes."""
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def new_environment(ctx: Context, *first: str) -> dict[str, str]:
    """The environment of every command: the configured variables, the search path, and plain output."""
    rules = ctx.commands
    path = (*first, *rules.first_path, *_SYSTEM_PATH, *rules.search_path)
    offline = _NO_RETRIES if rules.network == "none" else {}
    return {**_PLAIN_OUTPUT, **offline, **rules.environment, "PATH": ":".join(dict.fromkeys(path))}


def new_limits(ctx: Context, timeout: float, *, output_kb: int = _OUTPUT_KB) -> ProcessLimits:
    rules = ctx.commands
    return ProcessLimits(
        timeout=timeout,
        memory_mb=rules.memory_mb,
        cpu_seconds=max(1, round(timeout * 4)),
        file_size_mb=1024,
        open_files=1024,
        processes=rules.processes,
        output_kb=output_kb,
        settings=_SETTINGS,
    )


def check_timeout(given: float | None, default: float) -> float:
    timeout = default if given is None else given
    if not 0 < timeout <= MAX_SECONDS:
        raise ToolError(
            ErrorCode.INVALID_PARAMS, f"/timeout: must be above 0 and at most {MAX_SECONDS:g}, got {timeout:g}"
        )
    return timeout


def working_directory(ctx: Context, path: str | None) -> str:
    """The resolved directory to run in. It must be in the workspace itself, not merely where files may be read."""
    resolved = ctx.files.resolve(path or ".")
    root = ctx.files.resolve(".")
    if resolved != root and not resolved.startswith(root.rstrip("/") + "/"):
        raise ToolError(ErrorCode.PATH_FORBIDDEN, f"{path}: commands run inside the workspace only")
    found = ctx.files.stat(path or ".")
    if found is None:
        raise ToolError(ErrorCode.DIR_NOT_FOUND, f"Directory not found: {path}")
    if found.kind is not Kind.DIRECTORY:
        raise ToolError(ErrorCode.INVALID_PATH, f"{path}: is not a directory")
    return resolved


async def run(ctx: Context, request: ProcessRequest, command: str) -> Ended:
    """Run it and report its output as progress. An error names the command."""
    order = PrintedOrder()
    report = progress_reporter(ctx)

    def on_output(stream: Stream, data: bytes) -> None:
        order.add(stream, data)
        report(stream, data)

    try:
        ended = await ctx.processes.run(request, on_output)
    except ToolError as problem:
        problem.meta = {"command": command, "order": order.parts, **(problem.meta or {})}
        raise
    ended = dataclasses.replace(ended, order=tuple(order.parts))
    if ended.limit_hit and ended.exit_code:
        raise failed(ended.limit_hit, ended, command, code=ErrorCode.LIMIT)
    return ended


def progress_reporter(ctx: Context) -> OnOutput:
    """Reports output as text. A character that arrives in two pieces is reported when it is complete."""
    decoders = new_decoders()

    def report(stream: Stream, data: bytes) -> None:
        if text := decoders[stream].decode(data):
            ctx.progress(text)

    return report


def decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def failed(
    message: str,
    ended: Ended,
    command: str,
    *,
    code: ErrorCode = ErrorCode.TOOL_EXEC,
    data: Mapping[str, Any] | None = None,
) -> ToolError:
    kept = data or {"stdout": decode(ended.stdout), "stderr": decode(ended.stderr), "exit_code": ended.exit_code}
    meta = {"command": command, "sandbox": ended.sandbox, "truncated": ended.truncated, "order": ended.order}
    return ToolError(code, message, retryable=False, data=with_truncation(kept, ended), meta=meta)


def with_truncation(data: Mapping[str, Any], ended: Ended) -> Mapping[str, Any]:
    """The data; if not all output was kept, it says so and how to get all of it."""
    return {**data, "truncated": True, "next": FROM_FILE} if ended.truncated else data


def describe_exit(ended: Ended) -> str:
    """The exit status and the line that says why."""
    status = f"exit code {ended.exit_code}" if ended.exit_code >= 0 else f"killed by signal {-ended.exit_code}"
    why = find_reason(decode(ended.stderr)) or find_reason(decode(ended.stdout[-_REASON_BYTES:]))
    return f"{status}: {why}" if why else status


def deduct(limits: ProcessLimits, seconds: float) -> ProcessLimits:
    """The limits with the time deducted that an earlier command took."""
    return dataclasses.replace(limits, timeout=max(limits.timeout - seconds, 0.05))


def join_argv(argv: tuple[str, ...]) -> str:
    return shlex.join(argv)
