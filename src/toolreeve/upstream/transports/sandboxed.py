"""Starts a server inside the sandbox, with what its `sandbox` table grants.

A server with a `sandbox` table never starts outside of it: where this machine cannot sandbox it, it does not start.
"""

import asyncio
import os
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolreeve.core.errors import ToolError
from toolreeve.core.process import Network, ProcessLimits, ProcessRequest
from toolreeve.upstream.transports.process import Streams
from toolreeve.upstream.transports.transport import ServerUnavailable

NETWORKS: tuple[Network, ...] = ("none", "guarded", "host")
_LIMITS = {
    "max_memory_mb": "memory_mb",
    "max_cpu_time_seconds": "cpu_seconds",
    "max_file_size_mb": "file_size_mb",
    "max_open_files": "open_files",
    "max_processes": "processes",
}
_LISTS = {"allowed_paths": "paths", "readable_paths": "paths", "hosts": "names of hosts"}
_WORKSPACE = ("write", "read")
KEYS = ("network", "workspace", *_LISTS, *_LIMITS)
# A server is long-lived: the limits of a single command do not fit it.
_DEFAULTS = ProcessLimits(memory_mb=2048, cpu_seconds=100_000_000, file_size_mb=1024, open_files=1024, processes=256)
_KILL_SECONDS = 1.0


class ConfinedService(Protocol):
    """A long-running program in the sandbox."""

    @property
    def ended(self) -> "asyncio.Future[str]": ...

    def kill(self) -> None: ...


class ServiceSandbox(Protocol):
    """Starts long-running programs inside the sandbox."""

    def start(self, request: ProcessRequest, streams: Sequence[int]) -> Awaitable[ConfinedService]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxGrant:
    """A server's `sandbox` table. With `hosts`, a guarded network reaches only these. With `reads_workspace` it
    starts in a directory of its own, and the workspace is read-only."""

    network: Network = "none"
    hosts: frozenset[str] | None = None
    reads_workspace: bool = False
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    limits: ProcessLimits = _DEFAULTS


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPlacement:
    """Where a server runs. `sandbox` is None where this machine's sandbox cannot run long-lived programs."""

    grant: SandboxGrant
    workspace: str
    sandbox: ServiceSandbox | None


def read_grant(table: Mapping[str, Any]) -> SandboxGrant:
    """Raises ValueError, which names the key and the valid values."""
    for key, value in table.items():
        _check(key, value)
    given = {name: table[key] for key, name in _LIMITS.items() if key in table}
    defaults = {name: getattr(_DEFAULTS, name) for name in _LIMITS.values()}
    return SandboxGrant(
        network=table.get("network", "none"),
        hosts=frozenset(table["hosts"]) if "hosts" in table else None,
        reads_workspace=table.get("workspace", "write") == "read",
        writable=tuple(table.get("allowed_paths", ())),
        readable=tuple(table.get("readable_paths", ())),
        limits=ProcessLimits(**(defaults | given)),
    )


def _check(key: str, value: object) -> None:
    if key not in KEYS:
        raise ValueError(f"sandbox.{key} is unknown; known are {', '.join(KEYS)}")
    if key == "network" and value not in NETWORKS:
        raise ValueError(f"sandbox.network is {value!r}; it must be one of {', '.join(NETWORKS)}")
    if key == "workspace" and value not in _WORKSPACE:
        raise ValueError(f"sandbox.workspace is {value!r}; it must be one of {', '.join(_WORKSPACE)}")
    if key in _LISTS and not (isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)):
        raise ValueError(f"sandbox.{key} must be a list of {_LISTS[key]}")
    if key in _LIMITS and (type(value) is not int or value < 1):
        raise ValueError(f"sandbox.{key} must be a whole number of at least 1")


class SandboxedProcess:
    """A server in its slot."""

    def __init__(self, service: ConfinedService) -> None:
        self._service = service
        self.ended = service.ended
        self._kill_timer: asyncio.TimerHandle | None = None
        self.ended.add_done_callback(self._exited)

    def end(self) -> None:
        if self._kill_timer is None and not self.ended.done():
            self._kill_timer = asyncio.get_running_loop().call_later(_KILL_SECONDS, self._service.kill)

    def _exited(self, _: object) -> None:
        if self._kill_timer is not None:
            self._kill_timer.cancel()


async def start(
    argv: Sequence[str],
    environment: Mapping[str, str],
    directory: str | None,
    placement: SandboxPlacement,
    streams: Streams,
) -> SandboxedProcess:
    """Raises ServerUnavailable where it cannot be sandboxed."""
    grant = placement.grant
    request = ProcessRequest(
        argv=tuple(argv),
        directory=_within(placement.workspace, directory or "."),
        environment=environment,
        writable=tuple(_within(placement.workspace, path) for path in grant.writable),
        readable=tuple(_within(placement.workspace, path) for path in grant.readable),
        network=grant.network,
        hosts=grant.hosts,
        private_directory=grant.reads_workspace,
        limits=grant.limits,
    )
    try:
        if placement.sandbox is None:
            raise ServerUnavailable(
                "it must run in the sandbox (sandbox), and this machine's kind of sandbox cannot run servers"
            )
        return SandboxedProcess(await placement.sandbox.start(request, streams.theirs))
    except ToolError as refusal:
        raise ServerUnavailable(f"the sandbox refused to start it: {refusal.message}") from None
    finally:
        streams.hand_over()


def _within(workspace: str, path: str) -> str:
    return os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))  # noqa: PTH111, PTH118
