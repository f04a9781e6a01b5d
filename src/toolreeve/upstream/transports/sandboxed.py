"""How does a server run inside the sandbox? In a slot of its own, with what its `sandbox` table grants and no more.

A server that is to be enclosed never starts in the open: where the machine cannot enclose it, it does not start.
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
_LISTS = ("allowed_paths", "readable_paths")
KEYS = ("network", *_LISTS, *_LIMITS)
# A server lives long: what bounds a single command does not fit it.
_GENEROUS = ProcessLimits(memory_mb=2048, cpu_seconds=100_000_000, file_size_mb=1024, open_files=1024, processes=256)
_POLITE = 1.0


class ConfinedService(Protocol):
    """A program in the sandbox that stays until it ends or is killed."""

    @property
    def ended(self) -> "asyncio.Future[str]": ...

    def kill(self) -> None: ...


class Enclosure(Protocol):
    """What starts programs that stay inside the sandbox."""

    def start(self, request: ProcessRequest, streams: Sequence[int]) -> Awaitable[ConfinedService]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a server's `sandbox` table says."""

    network: Network = "none"
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    limits: ProcessLimits = _GENEROUS


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPlace:
    """Where a server is to run. `enclosure` is None where this machine's sandbox holds no program that stays."""

    grant: Grant
    workspace: str
    enclosure: Enclosure | None


def read_grant(table: Mapping[str, Any]) -> Grant:
    """Raises ValueError, which names the key and what would do."""
    for key, value in table.items():
        _check(key, value)
    limits = {ours: table[key] for key, ours in _LIMITS.items() if key in table}
    given = {name: getattr(_GENEROUS, name) for name in _LIMITS.values()}
    return Grant(
        network=table.get("network", "none"),
        writable=tuple(table.get("allowed_paths", ())),
        readable=tuple(table.get("readable_paths", ())),
        limits=ProcessLimits(**(given | limits)),
    )


def _check(key: str, value: object) -> None:
    if key not in KEYS:
        raise ValueError(f"sandbox.{key} is not known; there are {', '.join(KEYS)}")
    if key == "network" and value not in NETWORKS:
        raise ValueError(f"sandbox.network is {value!r}; it can be {', '.join(NETWORKS)}")
    if key in _LISTS and not (isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)):
        raise ValueError(f"sandbox.{key} must be a list of paths")
    if key in _LIMITS and (type(value) is not int or value < 1):
        raise ValueError(f"sandbox.{key} must be a whole number of at least 1")


class SandboxedProcess:
    """A server in its slot, as a child that can be ended."""

    def __init__(self, running: ConfinedService) -> None:
        self._running, self.ended = running, running.ended
        self._ending: asyncio.TimerHandle | None = None
        self.ended.add_done_callback(self._over)

    def end(self) -> None:
        if self._ending is None and not self.ended.done():
            self._ending = asyncio.get_running_loop().call_later(_POLITE, self._running.kill)

    def _over(self, _: object) -> None:
        if self._ending is not None:
            self._ending.cancel()


async def start(
    argv: Sequence[str], environment: Mapping[str, str], directory: str | None, place: SandboxPlace, streams: Streams
) -> SandboxedProcess:
    """Raises ServerAway where it cannot be enclosed."""
    grant = place.grant
    request = ProcessRequest(
        argv=tuple(argv),
        directory=_within(place.workspace, directory or "."),
        environment=environment,
        writable=tuple(_within(place.workspace, path) for path in grant.writable),
        readable=tuple(_within(place.workspace, path) for path in grant.readable),
        network=grant.network,
        limits=grant.limits,
    )
    try:
        if place.enclosure is None:
            raise ServerUnavailable("it is to run in the sandbox, and this kind of sandbox cannot hold a server")
        return SandboxedProcess(await place.enclosure.start(request, streams.theirs))
    except ToolError as refusal:
        raise ServerUnavailable(f"the sandbox does not take it: {refusal.message}") from None
    finally:
        streams.hand_over()


def _within(workspace: str, path: str) -> str:
    return os.path.normpath(os.path.join(workspace, os.path.expanduser(path)))  # noqa: PTH111, PTH118
