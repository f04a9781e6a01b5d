"""May this program run here, and how did it end? `Sandbox` is what stands behind `Context.processes`.

A place is built when the first program needs it and shared by all that need the same. The strongest tier that the
machine offers is taken; whatever is weaker than required is refused, never silently used.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, OnOutput, ProcessRequest
from toolreeve.sandbox import breach, cgroup
from toolreeve.sandbox.command import Command, Outcome
from toolreeve.sandbox.grounds import Grounds
from toolreeve.sandbox.kernel_limits import kernel_limits
from toolreeve.sandbox.launch import Unavailable
from toolreeve.sandbox.proxy import proxy_environment
from toolreeve.sandbox.running import Running
from toolreeve.sandbox.session import Session, Slot

Tier = Literal["full", "landlock", "limits"]
TIERS: tuple[Tier, ...] = ("full", "landlock", "limits")
Serve = Callable[[socket.socket], Coroutine[Any, Any, None]]
FIRST_UNUSED_UID = 2_000_000_000
_UNUSED_UIDS = 100_000_000
_MOST_SESSIONS = 8
_KEPT_WARM = 2
_IDLE_AFTER = 10.0
_NEVER_STARTED = b"N"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """The weakest tier that is good enough, and how many commands run at once. `confined` is false by choice only."""

    require: Tier = "landlock"
    concurrency: int = 16
    confined: bool = True


class Sandbox:
    """`serve` carries what comes to the listener of a guarded network; without it, no program can ask for one."""

    def __init__(self, grounds: Grounds, strictness: Strictness, serve: Serve | None = None) -> None:
        self._grounds, self._strictness, self._serve = grounds, strictness, serve
        self._sessions: dict[tuple[object, ...], Session] = {}
        self._serving: dict[Session, asyncio.Task[None]] = {}
        self._building = asyncio.Lock()
        self._nothing = -1
        self._bases: cgroup.Bases | str | None = None
        self._reasons: list[str] = []
        self._changed: tuple[int, ...] = ()
        self._watched: tuple[object, ...] = ()
        self._trimming: asyncio.TimerHandle | None = None

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        self._check(request)
        session, outcome = await self._try(request, on_output)
        if outcome is None or outcome.kind == _NEVER_STARTED:  # its place died before: another one is built
            session, outcome = await self._try(request, on_output)
        if outcome is None:
            raise ToolError(ErrorCode.TOOL_EXEC, f"the sandbox does not hold: {self._reasons[-1]}")
        return _ended(request, outcome, session.plan.tier if self._strictness.confined else "none")

    async def start(self, request: ProcessRequest, streams: Sequence[int]) -> Running:
        """A program that stays, on descriptors for its input, output and errors that remain the caller's to close.

        Its time is not limited. Raises ToolError as `run` does.
        """
        self._check(request)
        session = await self._session(request)
        environment = _guarded(session) if request.network == "guarded" else session.environment
        session.busy += 1
        session.lent += 1
        try:
            running = Running(session, await self._slot(session, request), partial(_part, session))
            running.start(request, environment, streams)
        except Unavailable as problem:
            _part(session)
            raise ToolError(ErrorCode.TOOL_EXEC, f"the sandbox does not hold: {problem}") from None
        except BaseException:
            _part(session)
            raise
        return running

    async def _try(self, request: ProcessRequest, on_output: OnOutput | None) -> tuple[Session, Outcome | None]:
        """No outcome where no slot could be had."""
        session = await self._session(request)
        environment = session.environment
        if request.network == "guarded":
            environment = _guarded(session)
        session.busy += 1
        try:
            slot = await self._slot(session, request)
            command = Command(session, slot, on_output, request.limits)
            return session, await command.run(request, environment, self._nothing)
        except Unavailable as problem:
            self._reasons.append(str(problem))
            return session, None
        finally:
            session.busy -= 1
            if self._trimming is None:
                self._trimming = asyncio.get_running_loop().call_later(_IDLE_AFTER, self._trim)

    def _check(self, request: ProcessRequest) -> None:
        if request.network == "guarded" and self._serve is None:
            raise ToolError(ErrorCode.PERMISSION, "network: guarded needs the guarding proxy, which is not running")
        if request.allowed_programs and os.path.basename(request.argv[0]) not in request.allowed_programs:
            allowed = ", ".join(request.allowed_programs)
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"{request.argv[0]!r} is not among the allowed: {allowed}")
        if not request.private_directory and not self._grounds.contains(request.directory):
            raise ToolError(ErrorCode.PATH_FORBIDDEN, f"{request.directory!r} lies outside the workspace")

    async def _slot(self, session: Session, request: ProcessRequest) -> Slot:
        limits, plan = request.limits, session.plan
        held = kernel_limits(limits, memory=plan.counts_memory, processes=plan.counts_processes)
        while True:
            slot = await session.take((request.network, held))
            if slot.group is None:
                return slot
            try:
                slot.group.limit(limits.memory_mb << 20, limits.processes)
            except OSError:  # what an earlier command left in memory does not fit: a new one has nothing yet
                session.drop(slot)
                continue
            return slot

    async def _session(self, request: ProcessRequest) -> Session:
        key = self._key(request)
        session = self._sessions.get(key)
        if session is None or not session.alive:
            async with self._building:
                session = self._sessions.get(key)
                if session is None or not session.alive:
                    session = self._sessions[key] = await self._build(request)
        return session

    def _key(self, request: ProcessRequest) -> tuple[object, ...]:
        changed = self._grounds.changed()
        if changed != self._changed:
            self._changed, self._watched = changed, self._grounds.watched()
        return (
            self._watched,
            request.writable,
            request.readable,
            request.network == "host",
            request.private_directory,
            request.read_only,
            request.allowed_programs,
        )

    async def _build(self, request: ProcessRequest) -> Session:
        self._make_room()
        if self._nothing < 0:
            self._nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        if self._bases is None:
            self._bases = cgroup.find()
        for tier, uid in self._candidates():
            session = self._session_of(request, tier, uid)
            try:
                listener = await session.start()
                session.give_back(await self._slot(session, request))  # only a slot that holds proves the tier
            except (Unavailable, TimeoutError) as problem:
                session.close()
                self._reasons.append(f"{tier}: {problem or 'no answer'}")
                continue
            if listener is not None and self._serve is not None:
                self._serving[session] = asyncio.create_task(self._serve(listener))
            return session
        raise self._refusal()

    def _candidates(self) -> list[tuple[Tier, int | None]]:
        if not self._strictness.confined:
            return [("limits", None)]
        good_enough = TIERS[: TIERS.index(self._strictness.require) + 1]
        plain: list[tuple[Tier, int | None]] = [(tier, None) for tier in good_enough]
        if os.geteuid() == 0:
            unused = FIRST_UNUSED_UID + (os.getpid() * 64 + len(self._sessions)) % _UNUSED_UIDS
            return [("full", unused), *plain]
        return plain

    def _session_of(self, request: ProcessRequest, tier: Tier, uid: int | None) -> Session:
        bases = self._bases if isinstance(self._bases, cgroup.Bases) else None
        plan = self._grounds.plan(request, tier, uid=uid, counts=bases is None)
        return Session(plan, bases, self._strictness.concurrency)

    def _refusal(self) -> ToolError:
        reasons = "; ".join(dict.fromkeys(self._reasons))
        return ToolError(
            ErrorCode.PERMISSION,
            f"this machine cannot give the sandbox that is required ({self._strictness.require}): {reasons}",
            suggestions=("run `toolreeve doctor` to see what is missing and how to get it",),
        )

    def _make_room(self) -> None:
        """Places that nobody is in go, oldest first: those of changed paths, and those beyond what is kept."""
        for key, session in list(self._sessions.items()):
            outdated = key[0] != self._watched or not session.alive
            if not session.busy and (outdated or len(self._sessions) >= _MOST_SESSIONS):
                self._close(session)
                del self._sessions[key]

    def _trim(self) -> None:
        """After a burst, keep only a few slots warm."""
        self._trimming = None
        for session in self._sessions.values():
            session.trim(_KEPT_WARM)

    def _close(self, session: Session) -> None:
        if (serving := self._serving.pop(session, None)) is not None:
            serving.cancel()
        session.close()

    async def close(self) -> None:
        if self._trimming is not None:
            self._trimming.cancel()
        serving = list(self._serving.values())
        for session in self._sessions.values():
            self._close(session)
        self._sessions.clear()
        await asyncio.gather(*serving, return_exceptions=True)
        if self._nothing >= 0:
            os.close(self._nothing)
            self._nothing = -1


def _part(session: Session) -> None:
    session.busy -= 1
    session.lent -= 1


def _guarded(session: Session) -> Mapping[str, str]:
    if not session.apart:
        message = "network: guarded needs a network namespace, which this machine does not give (toolreeve doctor)"
        raise ToolError(ErrorCode.PERMISSION, message)
    return {**session.environment, **proxy_environment()}


def _ended(request: ProcessRequest, outcome: Outcome, tier: str) -> Ended:
    """What came of it, or the error that says why it was ended."""
    limits = request.limits
    code = 128 + outcome.status if outcome.kind == b"F" else os.waitstatus_to_exitcode(outcome.status)
    evidence = breach.Evidence(
        kind=outcome.kind,
        exit_code=code,
        cpu_seconds=outcome.cpu_seconds,
        stderr=outcome.stderr[-4096:],
        memory=outcome.memory_met,
        processes=outcome.processes_met,
    )
    if outcome.kind == b"F":
        raise ToolError(ErrorCode.TOOL_EXEC, f"{request.argv[0]!r} cannot be started: {os.strerror(outcome.status)}")
    if limit := breach.enforced(limits, evidence):
        raise ToolError(ErrorCode.LIMIT, limit, data=_remains(outcome, code), meta=_meta(outcome, tier))
    if outcome.kind == b"T":
        message = f"the command did not end within {limits.timeout:g} s and was killed"
        raise ToolError(ErrorCode.TIMEOUT, message, data=_remains(outcome, code), meta=_meta(outcome, tier))
    if outcome.kind in (b"K", _NEVER_STARTED):
        raise ToolError(
            ErrorCode.TOOL_EXEC,
            "the sandbox ended under the command",
            data=_remains(outcome, code),
            meta=_meta(outcome, tier),
        )
    return Ended(
        exit_code=code,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
        truncated=outcome.truncated,
        sandbox=tier,
        seconds=outcome.seconds,
        breach=breach.met(limits, evidence),
    )


def _meta(outcome: Outcome, tier: str) -> dict[str, Any]:
    return {"sandbox": tier, "truncated": outcome.truncated}


def _remains(outcome: Outcome, code: int) -> dict[str, Any]:
    return {
        "stdout": outcome.stdout.decode(errors="replace"),
        "stderr": outcome.stderr.decode(errors="replace"),
        "exit_code": code,
    }
