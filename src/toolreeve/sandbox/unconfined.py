"""How is a program run where nothing of ours confines it? On other systems, and for the docker client.

Its process group is ended with it. What leaves the group cannot be held here, which is why results say `limits`.
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
from typing import NamedTuple

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, OnOutput, ProcessLimits, ProcessRequest
from toolreeve.sandbox import limit_report
from toolreeve.sandbox.capture import Capture
from toolreeve.sandbox.environment import BASE
from toolreeve.sandbox.layout import Layout

_BLOCKS_A_MEGABYTE = 2048
_LIMITED = 'ulimit -n "$1" && ulimit -f "$2" && ulimit -t "$3" && ulimit -c 0 && shift 3 && exec "$@"'
_LAST_WORDS = 1.0


class Spoken(NamedTuple):
    """`exit_code` is None where the time was over."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    seconds: float


class Unconfined:
    """`Processes` with nothing but resource limits around a program."""

    def __init__(self, grounds: Layout, *, tier: str = "limits") -> None:
        self._grounds, self._tier = grounds, tier

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        if request.network == "guarded":
            raise ToolError(ErrorCode.PERMISSION, "network: guarded cannot be enforced on this machine")
        scratch = tempfile.mkdtemp(prefix="toolreeve-")
        try:
            spoken = await speak(
                limited(request.argv, request.limits),
                environment={**BASE, "HOME": scratch, "TMPDIR": scratch, **request.environment}
                | written(request.files, scratch),
                directory=scratch if request.private_directory else request.directory,
                request=request,
                on_output=on_output,
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return ended(spoken, request, self._tier)

    async def close(self) -> None:
        """Nothing is kept between commands."""


def limited(argv: Sequence[str], limits: ProcessLimits) -> list[str]:
    """The program behind the limits that any shell can set."""
    held = (limits.open_files, limits.file_size_mb * _BLOCKS_A_MEGABYTE, limits.cpu_seconds)
    return ["/bin/sh", "-c", _LIMITED, "sh", *map(str, held), *argv]


def written(files: Mapping[str, bytes], folder: str) -> dict[str, str]:
    """Files by name, where descriptors cannot be handed over."""
    for name, data in files.items():
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
    return {name: f"{folder}/{name}" for name in files}


async def speak(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    directory: str,
    request: ProcessRequest,
    on_output: OnOutput | None,
) -> Spoken:
    """Run it to its end, or to that of its time."""
    loop = asyncio.get_running_loop()
    began, room = loop.time(), request.limits.output_kb * 1024
    out, err = Capture("stdout", room, loop, on_output), Capture("stderr", room, loop, on_output)
    drained = [loop.create_future(), loop.create_future()]
    process = _started(argv, environment, directory, request.stdin, [(out, drained[0]), (err, drained[1])])
    waiting = asyncio.ensure_future(asyncio.to_thread(process.wait))
    try:
        await asyncio.wait({waiting}, timeout=request.limits.timeout)
    finally:
        timed_out = not waiting.done()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await waiting
        await asyncio.wait(drained, timeout=_LAST_WORDS)  # whoever keeps a stream open elsewhere does not hold us
        out.close()
        err.close()
    return Spoken(
        exit_code=None if timed_out else process.returncode,
        stdout=bytes(out.kept),
        stderr=bytes(err.kept),
        truncated=out.truncated or err.truncated,
        seconds=loop.time() - began,
    )


def _started(
    argv: Sequence[str],
    environment: Mapping[str, str],
    directory: str,
    stdin: bytes,
    streams: "Sequence[tuple[Capture, asyncio.Future[None]]]",
) -> subprocess.Popen[bytes]:
    pipes = [capture.start(partial(drained.set_result, None)) for capture, drained in streams]
    try:
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            return subprocess.Popen(
                argv,
                stdin=given,
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


def ended(spoken: Spoken, request: ProcessRequest, tier: str) -> Ended:
    """What came of it, or the error that says why it was ended."""
    said = {
        "stdout": spoken.stdout.decode(errors="replace"),
        "stderr": spoken.stderr.decode(errors="replace"),
        "exit_code": -9 if spoken.exit_code is None else spoken.exit_code,
    }
    meta = {"sandbox": tier, "truncated": spoken.truncated}
    if spoken.exit_code is None:
        message = f"the command did not end within {request.limits.timeout:g} s and was killed"
        raise ToolError(ErrorCode.TIMEOUT, message, data=said, meta=meta)
    evidence = limit_report.LimitEvidence(
        kind=b"X", exit_code=spoken.exit_code, cpu_seconds=0.0, stderr=spoken.stderr, memory=False, processes=False
    )
    if limit := limit_report.enforced(request.limits, evidence):
        raise ToolError(ErrorCode.LIMIT, limit, data=said, meta=meta)
    return Ended(
        exit_code=spoken.exit_code,
        stdout=spoken.stdout,
        stderr=spoken.stderr,
        truncated=spoken.truncated,
        sandbox=tier,
        seconds=spoken.seconds,
        breach=limit_report.met(request.limits, evidence),
    )
