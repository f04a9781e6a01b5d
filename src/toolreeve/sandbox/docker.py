"""Docker sandbox: one `docker run` per command.

Nothing is taken from the user's docker configuration but how to reach the daemon. Where no daemon answers, no program
runs.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Mapping, Sequence

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, OnOutput, ProcessLimits, ProcessRequest
from toolreeve.core.trial import Confinement, Layer
from toolreeve.sandbox.command_result import CommandOutcome, build_result
from toolreeve.sandbox.integrity.watch import Watch
from toolreeve.sandbox.kernel.mounts import PRIVATE
from toolreeve.sandbox.layout import BASE_ENVIRONMENT, CoveredPaths, Layout
from toolreeve.sandbox.unconfined import run_program, write_files

TIER = "docker"
FILES = "/run/toolreeve"
_DAEMON_FAILED, _CANNOT_START, _NOT_FOUND = 125, 126, 127
_TEMPORARY = "size=64m,mode=1777,nosuid,nodev"
_REMOVE_TIMEOUT = 10.0


class Docker:
    """`Processes` in containers. `connection` are the environment variables that locate the daemon."""

    def __init__(self, layout: Layout, image: str, connection: Mapping[str, str], client: str = "docker") -> None:
        self._layout = layout
        self._image = image
        self._connection = dict(connection)
        self._client = client

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        if request.network == "guarded":
            raise ToolError(
                ErrorCode.PERMISSION, "network: guarded is not available with sandbox.mode = docker; use none or host"
            )
        if request.allowed_programs and os.path.basename(request.argv[0]) not in request.allowed_programs:
            allowed = ", ".join(request.allowed_programs)
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"{request.argv[0]!r} is not in allowed_commands: {allowed}")
        name = f"toolreeve-{uuid.uuid4().hex[:12]}"
        folder = tempfile.mkdtemp(prefix="toolreeve-")
        try:
            files = {key: f"{FILES}/{key}" for key in write_files(request.files, folder)}
            outcome = await self._run_client(self.command(request, name, files, folder), request, on_output)
        finally:
            await self._remove(name)
            shutil.rmtree(folder, ignore_errors=True)
        _check(outcome, request)
        return build_result(request, outcome, TIER)

    def command(self, request: ProcessRequest, name: str, files: Mapping[str, str], folder: str) -> list[str]:
        """The whole command line of the client. `folder` holds the `files` on the host."""
        own = {"HOME": "/tmp", "TMPDIR": "/tmp"}  # noqa: S108  # the container's
        environment = {**BASE_ENVIRONMENT, **own, **request.environment, **files}
        return [
            *(self._client, "run", "--rm", "--init", "--interactive", "--name", name, "--pull", "missing"),
            *("--network", "host" if request.network == "host" else "none"),
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--user", f"{os.geteuid()}:{os.getegid()}", "--ipc", "private", "--hostname", "sandbox"),
            *_limits(request.limits),
            *("--tmpfs", f"/tmp:{_TEMPORARY}", "--tmpfs", f"{PRIVATE}:{_TEMPORARY}"),  # noqa: S108  # the container's
            *self._volumes(request, folder if files else ""),
            *("--workdir", PRIVATE if request.private_directory else request.directory),
            *(word for key, value in environment.items() for word in ("--env", f"{key}={value}")),
            *("--entrypoint", request.argv[0], self._image, *request.argv[1:]),
        ]

    def _volumes(self, request: ProcessRequest, folder: str) -> list[str]:
        plan = self._layout.plan(request, TIER, uid=None, counts=False, found=self._find_covered())
        own = dict.fromkeys((self._layout.workspace, *plan.viewed, *request.readable))
        mounted = [(path, path, "ro") for path in own if path not in plan.writable]
        mounted += [(path, path, "rw") for path in plan.writable]
        mounted += [(path, path, "ro") for path in (*plan.protected, *plan.guarded)]
        mounted += [(os.devnull, path, "ro") for path in plan.hidden if os.path.isfile(path)]
        if folder:
            mounted.append((folder, FILES, "ro"))
        hidden = [path for path in plan.hidden if os.path.isdir(path)]
        volumes = [word for source, target, mode in mounted for word in ("--mount", _bind(source, target, mode))]
        empty = {"readonly": "true", "tmpfs-size": "4k", "tmpfs-mode": "0100"}  # docker takes 0 for its own default
        covers = [_mount(type="tmpfs", target=path, **empty) for path in hidden]
        return volumes + [word for cover in covers for word in ("--mount", cover)]

    def _find_covered(self) -> CoveredPaths:
        watch = Watch(self._layout.table())
        try:
            watch.start()
            return CoveredPaths(
                hidden=sorted(watch.hidden()), guarded=sorted(watch.guarded()), sensitive=sorted(watch.sensitive())
            )
        finally:
            watch.close()

    async def _run_client(
        self, argv: Sequence[str], request: ProcessRequest, on_output: OnOutput | None
    ) -> CommandOutcome:
        return await run_program(
            argv, environment=self._connection, directory="/", request=request, on_output=on_output
        )

    async def _remove(self, name: str) -> None:
        """The client may be gone while the container is not."""
        removal = ProcessRequest(argv=(), directory="/", limits=ProcessLimits(timeout=_REMOVE_TIMEOUT))
        await self._run_client([self._client, "rm", "--force", name], removal, None)

    @property
    def hides_unread(self) -> bool:
        return False

    async def confinements(self) -> frozenset[Confinement]:
        return frozenset((Confinement.LOOK,))

    def end_trial(self, _: str) -> Sequence[Layer]:
        return ()

    async def close(self) -> None:
        """Every command has removed its own container."""


def _limits(limits: ProcessLimits) -> list[str]:
    memory = f"{limits.memory_mb}m"
    size = limits.file_size_mb << 20
    return [
        *("--memory", memory, "--memory-swap", memory, "--pids-limit", str(limits.processes)),
        *("--ulimit", f"nofile={limits.open_files}:{limits.open_files}", "--ulimit", f"fsize={size}:{size}"),
        *("--ulimit", f"cpu={limits.cpu_seconds}:{limits.cpu_seconds + 1}", "--ulimit", "core=0:0"),
    ]


def _check(outcome: CommandOutcome, request: ProcessRequest) -> None:
    stderr = outcome.stderr.decode(errors="replace").strip()
    if outcome.exit_code == _DAEMON_FAILED:
        message = f"sandbox.mode is docker, and docker cannot run the command: {stderr}"
        hint = "start the Docker daemon, or set sandbox.mode to local"
        raise ToolError(ErrorCode.PERMISSION, message, suggestions=(hint,))
    if outcome.exit_code in (_CANNOT_START, _NOT_FOUND) and "OCI runtime" in stderr:
        raise ToolError(ErrorCode.TOOL_EXEC, f"{request.argv[0]!r} cannot be started: {stderr}")


def _bind(source: str, target: str, mode: str) -> str:
    return _mount(type="bind", source=source, target=target, **({"readonly": "true"} if mode == "ro" else {}))


def _mount(**fields: str) -> str:
    """The value of `--mount`, which is a line of CSV: paths may hold colons, commas and quotes."""
    quoted = (f"{name}={value}".replace('"', '""') for name, value in fields.items())
    return ",".join(f'"{field}"' if set(field) & set(',"\n\r') else field for field in quoted)
