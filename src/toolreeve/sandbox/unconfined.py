"""Unconfined programs: on systems without a kernel sandbox, and the docker client.

The process group is killed with the program. What leaves the group escapes, which is why results say `limits`.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, OnOutput, ProcessLimits, ProcessRequest
from toolreeve.core.trial import Confinement, Layer
from toolreeve.sandbox.capture import Capture
from toolreeve.sandbox.command_result import CommandOutcome, build_result
from toolreeve.sandbox.layout import BASE_ENVIRONMENT, Layout

_BLOCKS_PER_MEGABYTE = 2048
_ULIMITS = 'ulimit -n "$1" && ulimit -f "$2" && ulimit -t "$3" && ulimit -c 0 && shift 3 && exec "$@"'
_DRAIN_TIMEOUT = 1.0


class Unconfined:
    """`Processes` with resource limits and nothing else."""

    def __init__(self, layout: Layout, *, tier: str = "limits") -> None:
        self._layout = layout
        self._tier = tier

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        if request.network == "guarded":
            raise ToolError(
                ErrorCode.PERMISSION, "network: guarded cannot be enforced on this system; use none or host"
            )
        scratch = tempfile.mkdtemp(prefix="toolreeve-")
        try:
            files = write_files(request.files, scratch)
            outcome = await run_program(
                with_ulimits(request.argv, request.limits),
                environment={**BASE_ENVIRONMENT, "HOME": scratch, "TMPDIR": scratch, **request.environment, **files},
                directory=scratch if request.private_directory else request.directory,
                request=request,
                on_output=on_output,
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return build_result(request, outcome, self._tier)

    @property
    def hides_unread(self) -> bool:
        return False

    async def confinements(self) -> frozenset[Confinement]:
        return frozenset()

    def end_trial(self, _: str) -> Sequence[Layer]:
        return ()

    async def close(self) -> None:
        """Nothing is kept between commands."""


def with_ulimits(argv: Sequence[str], limits: ProcessLimits) -> list[str]:
    """The command line behind the limits that any shell can set."""
    values = (limits.open_files, limits.file_size_mb * _BLOCKS_PER_MEGABYTE, limits.cpu_seconds)
    return ["/bin/sh", "-c", _ULIMITS, "sh", *map(str, values), *argv]


def write_files(files: Mapping[str, bytes], folder: str) -> dict[str, str]:
    """Files by name, where descriptors cannot be passed."""
    for name, data in files.items():
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
    return {name: f"{folder}/{name}" for name in files}


async def run_program(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: str,
    request: ProcessRequest,
    on_output: OnOutput | None,
) -> CommandOutcome:
    """Run it until it exits or times out."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    room = request.limits.output_kb * 1024
    out = Capture("stdout", room, loop, on_output)
    err = Capture("stderr", room, loop, on_output)
    drained = [loop.create_future(), loop.create_future()]
    process = _start(argv, environment, directory, request.stdin, [(out, drained[0]), (err, drained[1])])
    waiting = asyncio.ensure_future(asyncio.to_thread(process.wait))
    try:
        await asyncio.wait({waiting}, timeout=request.limits.timeout)
    finally:
        timed_out = not waiting.done()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await waiting
        await asyncio.wait(drained, timeout=_DRAIN_TIMEOUT)  # another process may keep a stream open
        out.close()
        err.close()
    return CommandOutcome(
        kind=b"T" if timed_out else b"X",
        exit_code=-signal.SIGKILL if timed_out else process.returncode,
        stdout=out.take(),
        stderr=err.take(),
        truncated=out.truncated or err.truncated,
        seconds=loop.time() - began,
    )


def _start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    directory: str,
    stdin: bytes,
    streams: "Sequence[tuple[Capture, asyncio.Future[None]]]",
) -> subprocess.Popen[bytes]:
    pipes = [capture.start(partial(drained.set_result, None)) for capture, drained in streams]
    try:
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            return subprocess.Popen(
                argv,
                stdin=file,
                stdout=pipes[0],
                stderr=pipes[1],
                env=dict(environment),
                cwd=directory,
                start_new_session=True,
            )
    except OSError as problem:
        for capture, _ in streams:
            capture.close()
        raise ToolError(ErrorCode.TOOL_EXEC, f"{argv[0]!r} cannot be started: {problem.strerror}") from None
    finally:
        for pipe in pipes:
            os.close(pipe)
