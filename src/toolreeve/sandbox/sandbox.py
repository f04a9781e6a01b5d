"""`Sandbox` runs programs in places that the kernel closes: it is what `Context.processes` stands for.

A place is built when the first program needs it and shared by all that need the same. All are of the one tier that the
machine gives. Before, while and after a command runs, what must be covered is.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended, OnOutput, ProcessRequest
from toolreeve.sandbox.command import NEVER_STARTED, CommandOutcome, ConfinedCommand
from toolreeve.sandbox.command_result import ended
from toolreeve.sandbox.environment import BASE
from toolreeve.sandbox.integrity.monitor import IntegrityMonitor
from toolreeve.sandbox.integrity.neutral_git import GitCovers
from toolreeve.sandbox.integrity.quarantine import Quarantine
from toolreeve.sandbox.launch import Unavailable
from toolreeve.sandbox.layout import CoveredPaths, Layout
from toolreeve.sandbox.proxy.server import proxy_environment
from toolreeve.sandbox.service import Service
from toolreeve.sandbox.session import SandboxSession
from toolreeve.sandbox.tiers import Builder, slot_for
from toolreeve.sandbox.tiers import Strictness as Strictness

Serve = Callable[[socket.socket], Coroutine[Any, Any, None]]
_MOST_SESSIONS = 8
_KEPT_WARM = 2
_IDLE_AFTER = 10.0
NO_COVERS = GitCovers()


class Sandbox:
    """`serve` carries what comes to the listener of a guarded network; without it, no program can ask for one."""

    def __init__(
        self,
        grounds: Layout,
        strictness: Strictness,
        serve: Serve | None = None,
        quarantine: Quarantine | None = None,
    ) -> None:
        self._grounds, self._strictness, self._serve = grounds, strictness, serve
        self._builder = Builder(grounds, strictness)
        self._upkeep = IntegrityMonitor(grounds.table(), self._cover, quarantine)
        self._sessions: dict[tuple[object, ...], SandboxSession] = {}
        self._serving: dict[SandboxSession, asyncio.Task[None]] = {}
        self._building = asyncio.Lock()
        self._nothing = -1
        self._reason = ""
        self._trimming: asyncio.TimerHandle | None = None

    @property
    def unwatched(self) -> str:
        """What is not noticed at once when it is made or replaced, and why; empty when everything is."""
        return self._upkeep.incomplete

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        self._check(request)
        await self._prepare()
        watched = self._begin(request)
        notices: tuple[str, ...] = ()
        try:
            session, outcome = await self._try(request, on_output)
            if outcome is None or outcome.kind == NEVER_STARTED:  # its place died before: another one is built
                session, outcome = await self._try(request, on_output)
        finally:
            if watched is not None:
                notices = await self._upkeep.end(watched, request.call)
        if outcome is None:
            raise ToolError(ErrorCode.TOOL_EXEC, f"the sandbox does not hold: {self._reason}")
        tier = session.plan.tier if self._strictness.confined else "none"
        return ended(request, outcome, tier, (*self._upkeep.take_notices(), *notices))

    async def start(self, request: ProcessRequest, streams: Sequence[int]) -> Service:
        """A program that stays, on descriptors for its input, output and errors that remain the caller's to close.

        Its time is not limited. Raises ToolError as `run` does.
        """
        self._check(request)
        await self._prepare()
        session = await self._session(request)
        environment = _environment(session, request)
        watched = self._begin(request, lasting=True)
        session.busy += 1
        session.lent += 1
        part = partial(self._part, session, watched)
        try:
            await session.covered()
            running = Service(session, await slot_for(session, request), part)
            self._upkeep.ready()
            running.start(request, environment, streams)
        except Unavailable as problem:
            part()
            raise ToolError(ErrorCode.TOOL_EXEC, f"the sandbox does not hold: {problem}") from None
        except BaseException:
            part()
            raise
        return running

    async def _prepare(self) -> None:
        """Before the first command everything is looked through once. Raises ToolError if not all can be hidden."""
        if self._strictness.confined and not self._upkeep.started:
            async with self._building:
                if not self._upkeep.started:
                    await self._upkeep.start()
        self._upkeep.look()
        if excess := self._upkeep.excess:
            raise ToolError(ErrorCode.LIMIT, excess)

    def _begin(self, request: ProcessRequest, *, lasting: bool = False) -> int | None:
        """None for a command that can change nothing which is guarded."""
        if self._strictness.confined and self._grounds.is_written_by(request):
            return self._upkeep.begin(lasting=lasting)
        return None

    async def _try(
        self, request: ProcessRequest, on_output: OnOutput | None
    ) -> tuple[SandboxSession, CommandOutcome | None]:
        """No outcome where no slot could be had."""
        session = await self._session(request)
        environment = _environment(session, request)
        session.busy += 1
        try:
            await session.covered()
            slot = await slot_for(session, request)
            self._upkeep.ready()
            command = ConfinedCommand(session, slot, on_output, request.limits)
            return session, await command.run(request, environment, self._nothing)
        except Unavailable as problem:
            self._reason = str(problem)
            return session, None
        finally:
            session.busy -= 1
            if self._trimming is None:
                self._trimming = asyncio.get_running_loop().call_later(_IDLE_AFTER, self._trim)

    def _cover(self, found: CoveredPaths) -> None:
        for session in self._sessions.values():
            if session.alive:
                session.cover(found.hidden, found.guarded)

    def _part(self, session: SandboxSession, watched: int | None) -> None:
        session.busy -= 1
        session.lent -= 1
        if watched is not None:
            self._upkeep.end_later(watched)

    def _check(self, request: ProcessRequest) -> None:
        if request.network == "guarded" and self._serve is None:
            raise ToolError(ErrorCode.PERMISSION, "network: guarded needs the guarding proxy, which is not running")
        if request.allowed_programs and os.path.basename(request.argv[0]) not in request.allowed_programs:
            allowed = ", ".join(request.allowed_programs)
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"{request.argv[0]!r} is not among the allowed: {allowed}")
        if not request.private_directory and not self._grounds.contains(request.directory):
            raise ToolError(ErrorCode.PATH_FORBIDDEN, f"{request.directory!r} lies outside the workspace")

    async def _session(self, request: ProcessRequest) -> SandboxSession:
        key = self._key(request)
        session = self._sessions.get(key)
        if session is None or not session.alive:
            async with self._building:
                session = self._sessions.get(key)
                if session is None or not session.alive:
                    session = self._sessions[key] = await self._build(request)
        return session

    def _key(self, request: ProcessRequest) -> tuple[object, ...]:
        return (
            request.writable,
            request.readable,
            request.network == "host",
            request.private_directory,
            request.read_only,
            request.allowed_programs,
            self._upkeep.neutral() if request.neutral_git else NO_COVERS,
        )

    async def _build(self, request: ProcessRequest) -> SandboxSession:
        self._make_room()
        if self._nothing < 0:
            self._nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        found = self._upkeep.found()
        neutral = self._upkeep.neutral() if request.neutral_git else NO_COVERS
        shown = CoveredPaths((*found.hidden, *neutral.hidden), found.guarded, neutral.contents)
        session = await self._builder.build(request, shown)
        self._upkeep.covered(found, apart=session.apart)
        later = self._upkeep.found()
        if later != found:  # what happened while it was being built
            session.cover(later.hidden, later.guarded)
        if session.listener is not None and self._serve is not None:
            self._serving[session] = asyncio.create_task(self._serve(session.listener))
        return session

    def _make_room(self) -> None:
        """Places that nobody is in go, oldest first: those that ended, and those beyond what is kept."""
        for key, session in list(self._sessions.items()):
            if not session.busy and (not session.alive or len(self._sessions) >= _MOST_SESSIONS):
                self._close(session)
                del self._sessions[key]

    def _trim(self) -> None:
        """After a burst, keep only a few slots warm."""
        self._trimming = None
        for session in self._sessions.values():
            session.trim(_KEPT_WARM)

    def _close(self, session: SandboxSession) -> None:
        if (serving := self._serving.pop(session, None)) is not None:
            serving.cancel()
        session.close()

    async def close(self) -> None:
        if self._trimming is not None:
            self._trimming.cancel()
        await self._upkeep.close()
        serving = list(self._serving.values())
        for session in self._sessions.values():
            self._close(session)
        self._sessions.clear()
        await asyncio.gather(*serving, return_exceptions=True)
        if self._nothing >= 0:
            os.close(self._nothing)
            self._nothing = -1


def _environment(session: SandboxSession, request: ProcessRequest) -> Mapping[str, str]:
    if request.network != "guarded":
        return BASE
    if not session.apart:
        message = "network: guarded needs a network namespace, which this machine does not give (toolreeve doctor)"
        raise ToolError(ErrorCode.PERMISSION, message)
    return {**BASE, **proxy_environment()}
