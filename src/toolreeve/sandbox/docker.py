"""How does the same confinement look as a container? One `docker run` a command, with the same paths and limits.

Nothing is taken from the client's configuration of the user but how to reach the daemon. Where no daemon answers, no
program runs.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, OnOutput, ProcessLimits, ProcessRequest
from toolreeve.sandbox.environment import BASE
from toolreeve.sandbox.integrity.watch import Watch
from toolreeve.sandbox.kernel.mounts import PRIVATE
from toolreeve.sandbox.layout import CoveredPaths, Layout
from toolreeve.sandbox.unconfined import Spoken, ended, speak, written

TIER = "docker"
HANDED = "/run/toolreeve"
_DAEMON_FAILED, _CANNOT_START, _NOT_FOUND = 125, 126, 127
_TEMPORARY = "size=64m,mode=1777,nosuid,nodev"
_ENDING = 10.0


class Docker:
    """`Processes` in containers. `reaching` are the variables that tell the client where the daemon is."""

    def __init__(self, grounds: Layout, image: str, reaching: Mapping[str, str], client: str = "docker") -> None:
        self._grounds, self._image, self._reaching, self._client = grounds, image, dict(reaching), client

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        if request.network == "guarded":
            raise ToolError(ErrorCode.PERMISSION, "network: guarded is not to be had in docker mode; use none or host")
        if request.allowed_programs and os.path.basename(request.argv[0]) not in request.allowed_programs:
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"{request.argv[0]!r} is not among the allowed programs")
        name, handed = f"toolreeve-{uuid.uuid4().hex[:12]}", tempfile.mkdtemp(prefix="toolreeve-")
        try:
            named = {key: f"{HANDED}/{key}" for key in written(request.files, handed)}
            spoken = await self._speak(self.command(request, name, named, handed), request, on_output)
        finally:
            await self._remove(name)
            shutil.rmtree(handed, ignore_errors=True)
        _check(spoken, request)
        return ended(spoken, request, TIER)

    def command(self, request: ProcessRequest, name: str, files: Mapping[str, str], handed: str) -> list[str]:
        """The whole command line of the client."""
        own = {"HOME": "/tmp", "TMPDIR": "/tmp"}  # noqa: S108  # the container's
        environment = {**BASE, **own, **request.environment, **files}
        return [
            *(self._client, "run", "--rm", "--init", "--interactive", "--name", name, "--pull", "missing"),
            *("--network", "host" if request.network == "host" else "none"),
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--user", f"{os.geteuid()}:{os.getegid()}", "--ipc", "private", "--hostname", "sandbox"),
            *_limits(request.limits),
            *("--tmpfs", f"/tmp:{_TEMPORARY}", "--tmpfs", f"{PRIVATE}:{_TEMPORARY}"),  # noqa: S108  # the container's
            *self._volumes(request, handed if files else ""),
            *("--workdir", PRIVATE if request.private_directory else request.directory),
            *(word for key, value in environment.items() for word in ("--env", f"{key}={value}")),
            *("--entrypoint", request.argv[0], self._image, *request.argv[1:]),
        ]

    def _volumes(self, request: ProcessRequest, handed: str) -> list[str]:
        plan = self._grounds.plan(request, TIER, uid=None, counts=False, found=self._found())
        own = [path for path in (self._grounds.workspace, *request.readable) if path not in plan.writable]
        mounted = [(path, path, "ro") for path in own]
        mounted += [(path, path, "rw") for path in plan.writable]
        mounted += [(path, path, "ro") for path in (*plan.protected, *plan.guarded)]
        mounted += [(os.devnull, path, "ro") for path in plan.hidden if os.path.isfile(path)]
        if handed:
            mounted.append((handed, HANDED, "ro"))
        hidden = [path for path in plan.hidden if os.path.isdir(path)]
        volumes = [word for source, target, mode in mounted for word in ("--volume", f"{source}:{target}:{mode}")]
        return volumes + [word for path in hidden for word in ("--tmpfs", f"{path}:size=4k,mode=000,ro")]

    def _found(self) -> CoveredPaths:
        watch = Watch(self._grounds.table())
        try:
            watch.start()
            return CoveredPaths(hidden=sorted(watch.hidden()), guarded=sorted(watch.guarded()))
        finally:
            watch.close()

    async def _speak(self, argv: Sequence[str], request: ProcessRequest, on_output: OnOutput | None) -> Spoken:
        return await speak(argv, environment=self._reaching, directory="/", request=request, on_output=on_output)

    async def _remove(self, name: str) -> None:
        """The client may be gone while the container is not."""
        removal = ProcessRequest(argv=(), directory="/", limits=ProcessLimits(timeout=_ENDING))
        await self._speak([self._client, "rm", "--force", name], removal, None)

    async def close(self) -> None:
        """Every command has removed its own container."""


def _limits(limits: ProcessLimits) -> list[str]:
    memory, size = f"{limits.memory_mb}m", limits.file_size_mb << 20
    return [
        *("--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes)),
        *("--ulimit", f"nofile={limits.open_files}:{limits.open_files}", "--ulimit", f"fsize={size}:{size}"),
        *("--ulimit", f"cpu={limits.cpu_seconds}:{limits.cpu_seconds + 1}", "--ulimit", "core=0:0"),
    ]


def _check(spoken: Spoken, request: ProcessRequest) -> None:
    said = spoken.stderr.decode(errors="replace").strip()
    if spoken.exit_code == _DAEMON_FAILED:
        message = f"sandbox.mode is docker, and docker cannot run the command: {said}"
        hint = "start the Docker daemon, or set sandbox.mode to local"
        raise ToolError(ErrorCode.PERMISSION, message, suggestions=(hint,))
    if spoken.exit_code in (_CANNOT_START, _NOT_FOUND) and "OCI runtime" in said:
        raise ToolError(ErrorCode.TOOL_EXEC, f"{request.argv[0]!r} cannot be started: {said}")
