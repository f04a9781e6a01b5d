"""How does a tool run programs and tell what came of it? Requests for `Context.processes`, and their ends as results.

Output is told as it comes; an exit status other than zero is a failure that keeps everything the program printed.
"""

import codecs
import dataclasses
import shlex
from collections.abc import Mapping
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Kind
from toolreeve.core.process import Ended, LimitSettings, OnOutput, ProcessLimits, ProcessRequest, Stream

LONGEST = 3600.0
MARGIN = 30.0
"""The runtime waits so much longer than a command may take: the end of the command is told, not the end of patience."""

_KEPT_KB = 1024
_SETTINGS = LimitSettings(
    memory_mb="commands.memory_mb",
    cpu_seconds="4 times the timeout",
    file_size_mb="",
    open_files="",
    processes="commands.processes",
)

_PLAIN_OUTPUT: Mapping[str, str] = {"PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", "NO_COLOR": "1"}
_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


def environment_of(ctx: Context, *first: str) -> dict[str, str]:
    """What every command is told: where programs are, those of the system before others, and to print plainly."""
    return {**_PLAIN_OUTPUT, "PATH": ":".join((*first, *_SYSTEM_PATH, *ctx.commands.search_path))}


def limits_of(ctx: Context, timeout: float, *, output_kb: int = _KEPT_KB) -> ProcessLimits:
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


def seconds_allowed(given: float | None, default: float) -> float:
    timeout = default if given is None else given
    if not 0 < timeout <= LONGEST:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/timeout: must be above 0 and at most {LONGEST:g}, got {timeout:g}")
    return timeout


def directory_of(ctx: Context, path: str | None) -> str:
    """The resolved directory to run in. It must lie in the workspace itself, not merely where files may be read."""
    resolved = ctx.files.resolve(path or ".")
    root = ctx.files.resolve(".")
    if resolved != root and not resolved.startswith(root.rstrip("/") + "/"):
        raise ToolError(ErrorCode.PATH_FORBIDDEN, f"{path}: commands run inside the workspace")
    found = ctx.files.stat(path or ".")
    if found is None:
        raise ToolError(ErrorCode.DIR_NOT_FOUND, f"Directory not found: {path}")
    if found.kind is not Kind.DIRECTORY:
        raise ToolError(ErrorCode.INVALID_PATH, f"{path}: is not a directory")
    return resolved


async def run(ctx: Context, request: ProcessRequest, command: str) -> Ended:
    """Run it, telling its output as progress. What ends it early says which command that was."""
    try:
        ended = await ctx.processes.run(request, teller(ctx))
    except ToolError as problem:
        problem.meta = {"command": command, **(problem.meta or {})}
        raise
    if ended.limit_hit and ended.exit_code:
        raise failed(ended.limit_hit, ended, command, code=ErrorCode.LIMIT)
    return ended


def teller(ctx: Context) -> OnOutput:
    """Passes output on as text. A character that arrives in two pieces is told when it is whole."""
    decoders = {name: codecs.getincrementaldecoder("utf-8")(errors="replace") for name in ("stdout", "stderr")}

    def tell(stream: Stream, data: bytes) -> None:
        if text := decoders[stream].decode(data):
            ctx.progress(text)

    return tell


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def failed(
    message: str,
    ended: Ended,
    command: str,
    *,
    code: ErrorCode = ErrorCode.TOOL_EXEC,
    data: Mapping[str, Any] | None = None,
) -> ToolError:
    kept = data or {"stdout": text_of(ended.stdout), "stderr": text_of(ended.stderr), "exit_code": ended.exit_code}
    meta = {"command": command, "sandbox": ended.sandbox, "truncated": ended.truncated}
    return ToolError(code, message, retryable=False, data=kept, meta=meta)


def how_it_exited(ended: Ended) -> str:
    """The status, and the last thing that was said about it."""
    status = f"exit code {ended.exit_code}" if ended.exit_code >= 0 else f"killed by signal {-ended.exit_code}"
    last = text_of(ended.stderr).strip().rpartition("\n")[2].strip()
    return f"{status}: {last[:300]}" if last else status


def shorter(limits: ProcessLimits, by: float) -> ProcessLimits:
    """The same limits for what runs after something else took `by` seconds."""
    return dataclasses.replace(limits, timeout=max(limits.timeout - by, 0.05))


def shown(argv: tuple[str, ...]) -> str:
    return shlex.join(argv)
