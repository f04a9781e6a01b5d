"""Processes: the capability to run programs in a sandbox, implemented by `sandbox/`.

A request is complete: nothing of the runtime's own environment, descriptors or working directory is inherited.
"""

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from toolreeve.core.trial import Confinement

Network = Literal["none", "guarded", "host"]
Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]


NO_EXTERNAL_DIFF = "GIT_EXTERNAL_DIFF"
"""Empty, it makes git fail where it would run a program for diffs. A sandbox that covers git's settings drops it."""


class LimitSettings(NamedTuple):
    """The settings that change the limits of a run, for messages; empty for a limit that no setting changes."""

    memory_mb: str = "max_memory_mb"
    cpu_seconds: str = "max_cpu_time_seconds"
    file_size_mb: str = "max_file_size_mb"
    open_files: str = "max_open_files"
    processes: str = "max_processes"


SANDBOX_SETTINGS = LimitSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Resource limits of a run; exceeding one ends it and is reported."""

    timeout: float = 30.0
    memory_mb: int = 512
    cpu_seconds: int = 30
    file_size_mb: int = 10
    open_files: int = 100
    processes: int = 10
    output_kb: int = 1024
    settings: LimitSettings = SANDBOX_SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRequest:
    """One program with its arguments, run without any shell unless it is one.

    `directory` is an absolute path inside the workspace. `writable` and `readable` are further absolute paths it may
    touch. `confinement` says what it can change of them. It was `approved` if it was allowed to run for
    real and reads as in WORK. With `hosts`, a guarded network reaches only these. With
    `neutral_git`, no git that it starts obeys settings or hooks of a repository that could run something. With
    `hides_history`, it sees nothing of what git stores. With
    `private_directory` it starts in a fresh directory that is removed afterwards. `call` is the id of the calling tool
    call. `files` are passed on inherited descriptors that the program finds by name in its environment
    (`NAME=/dev/fd/N`), for data too large or too sensitive for the environment.
    """

    argv: tuple[str, ...]
    directory: str
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict)
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    network: Network = "none"
    hosts: frozenset[str] | None = None
    private_directory: bool = False
    confinement: Confinement = Confinement.WORK
    approved: bool = False
    neutral_git: bool = False
    hides_history: bool = False
    call: str = ""
    allowed_programs: tuple[str, ...] = ()
    limits: ProcessLimits = ProcessLimits()

    @property
    def reads(self) -> Confinement:
        """The confinement that decides which files it sees."""
        return Confinement.WORK if self.approved else self.confinement


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How it ended. `limit_hit` is the message for the limit that it ran into; `sandbox` the tier it ran in;
    `order` says how many characters came from which stream, if that was followed;
    `quarantined` says, a sentence each, what it left for the host to obey and where that was put."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    sandbox: str
    seconds: float
    limit_hit: str | None = None
    quarantined: tuple[str, ...] = ()
    order: tuple[tuple[Stream, int], ...] = ()


def new_decoders() -> dict[Stream, codecs.IncrementalDecoder]:
    names: tuple[Stream, ...] = ("stdout", "stderr")
    return {name: codecs.getincrementaldecoder("utf-8")(errors="replace") for name in names}


class PrintedOrder:
    """Counts the characters that each stream printed, in the order in which they came."""

    def __init__(self) -> None:
        self.parts: list[tuple[Stream, int]] = []
        self._decoders = new_decoders()

    def add(self, stream: Stream, data: bytes) -> None:
        size = len(self._decoders[stream].decode(data))
        if self.parts and self.parts[-1][0] == stream:
            size += self.parts.pop()[1]
        self.parts.append((stream, size))


class Processes(Protocol):
    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        """Raises ToolError: TIMEOUT (with the output so far in its data), LIMIT, PERMISSION if the required tier is
        unavailable, CMD_NOT_ALLOWED, TOOL_EXEC if the program cannot be started."""
