"""`Sandbox`: runs programs in kernel sandboxes, the `Processes` of every tool.

A session is built when the first program needs it and shared by all that need the same. All are of the one tier that
the machine supports. Before, while and after a command runs, all paths that must be covered are.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import NO_EXTERNAL_DIFF, Ended, OnOutput, ProcessRequest
from toolreeve.core.trial import Confinement, Layer, TrialImpossible
from toolreeve.sandbox import trials
from toolreeve.sandbox.command import ConfinedCommand
from toolreeve.sandbox.command_result import NEVER_STARTED, CommandOutcome, build_result
from toolreeve.sandbox.integrity.monitor import IntegrityMonitor
from toolreeve.sandbox.integrity.neutral_git import GitCovers
from toolreeve.sandbox.integrity.quarantine import Quarantine
from toolreeve.sandbox.launch import Unavailable
from toolreeve.sandbox.layout import BASE_ENVIRONMENT, CoveredPaths, Layout
from toolreeve.sandbox.proxy.server import proxy_environment
from toolreeve.sandbox.service import Service
from toolreeve.sandbox.session import SandboxSession
from toolreeve.sandbox.tiers import Builder, slot_for
from toolreeve.sandbox.tiers import Strictness as Strictness

Serve = Callable[[socket.socket, frozenset[str] | None], Coroutine[Any, Any, None]]
_MOST_SESSIONS = 8
_KEPT_WARM = 2
_IDLE_AFTER = 10.0
NO_COVERS = GitCovers()


class Sandbox:
    """`serve` accepts connections on the listener of a guarded network, to the given hosts only; without it, no program
    can ask for one."""

    def __init__(
        self,
        layout: Layout,
        strictness: Strictness,
        serve: Serve | None = None,
        quarantine: Quarantine | None = None,
        warm_trials: int = 2,
    ) -> None:
        self._layout = layout
        self._strictness = strictness
        self._serve = serve
        self._builder = Builder(layout, strictness)
        self._monitor = IntegrityMonitor(layout.table(), self._cover, quarantine)
        self._sessions: dict[tuple[object, ...], SandboxSession] = {}
        self._serving: dict[SandboxSession, asyncio.Task[None]] = {}
        self._building = asyncio.Lock()
        self._devnull = -1
        self._last_failure = ""
        self._confinements: frozenset[Confinement] | None = None
        self._trials = trials.Trials(warm_trials)
        self._obstacle = trials.Obstacle(layout)
        self._trimming: asyncio.TimerHandle | None = None

    @property
    def unwatched(self) -> str:
        """Which paths are not noticed at once when they are made or replaced, and why; empty when all are."""
        return self._monitor.incomplete

    @property
    def hides_unread(self) -> bool:
        """Whether commands that nobody approved cannot read what rules guard. Known once commands can run."""
        return self._monitor.hides_unread and Confinement.TRY in (self._confinements or ())

    async def confinements(self) -> frozenset[Confinement]:
        """Found out by building the sandbox that the first command will most likely need."""
        if not self._strictness.confined:
            return frozenset()
        if self._confinements is None:
            directory = self._layout.workspace
            request = ProcessRequest(
                argv=("true",), directory=directory, neutral_git=True, confinement=Confinement.LOOK
            )
            try:
                await self._prepare()
                tier = (await self._session(request)).plan.tier
            except ToolError:  # the command itself will fail with it
                return frozenset()
            self._confinements = self._enforced_in(tier)
        return self._confinements

    def _enforced_in(self, tier: str) -> frozenset[Confinement]:
        if tier == "limits":
            return frozenset()
        if tier != "full" or self._obstacle.find():
            return frozenset((Confinement.LOOK,))
        return frozenset((Confinement.LOOK, Confinement.TRY))

    def end_trial(self, call: str) -> Sequence[Layer]:
        return self._trials.end(call)

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        self._check(request)
        await self._prepare()
        if request.confinement is Confinement.TRY:
            return await self._run_trial(request, on_output)
        run_id = self._begin(request)
        notices: tuple[str, ...] = ()
        try:
            session, outcome = await self._try(request, on_output)
            if outcome is None or outcome.kind == NEVER_STARTED:  # the session died before: another one is built
                session, outcome = await self._try(request, on_output)
        finally:
            if run_id is not None:
                notices = await self._monitor.end(run_id, request.call)
        if outcome is None:
            raise _unavailable(self._last_failure)
        tier = session.plan.tier if self._strictness.confined else "none"
        return build_result(request, outcome, tier, (*self._monitor.take_notices(), *notices))

    async def _run_trial(self, request: ProcessRequest, on_output: OnOutput | None) -> Ended:
        """All commands of a call run over the same layers. Raises TrialImpossible before anything has run."""
        session, slot = self._trials.find(request.call) or await self._start_trial(request)
        self._monitor.ready()
        command = ConfinedCommand(session, slot, on_output, request.limits)
        outcome = await command.run(_with_diffs(session, request), _environment(session, request), self._devnull)
        return build_result(request, outcome, session.plan.tier)

    async def _start_trial(self, request: ProcessRequest) -> trials.Started:
        if obstacle := self._obstacle.find():
            raise TrialImpossible(obstacle)
        try:
            session = await self._session(request)
            return await self._trials.start(request.call, session, request)
        except (ToolError, Unavailable) as problem:
            raise TrialImpossible(str(problem)) from None

    async def start(self, request: ProcessRequest, streams: Sequence[int]) -> Service:
        """A long-running program, on descriptors for stdin, stdout and stderr that the caller closes.

        It has no timeout. Raises ToolError as `run` does.
        """
        self._check(request)
        await self._prepare()
        session = await self._session(request)
        environment = _environment(session, request)
        run_id = self._begin(request, is_service=True)
        session.busy += 1
        session.lent += 1
        on_end = partial(self._service_ended, session, run_id)
        try:
            await session.wait_covered()
            service = Service(session, await slot_for(session, request), on_end)
            self._monitor.ready()
            service.start(request, environment, streams)
        except Unavailable as problem:
            on_end()
            raise _unavailable(str(problem)) from None
        except BaseException:
            on_end()
            raise
        return service

    async def _prepare(self) -> None:
        """Before the first command all roots are walked once. Raises ToolError if not everything can be covered."""
        if self._strictness.confined and not self._monitor.started:
            async with self._building:
                if not self._monitor.started:
                    await self._monitor.start()
        self._monitor.check()
        if excess := self._monitor.excess:
            raise ToolError(ErrorCode.LIMIT, excess)

    def _begin(self, request: ProcessRequest, *, is_service: bool = False) -> int | None:
        """None for a command that cannot change any guarded path."""
        if self._strictness.confined and self._layout.is_written_by(request):
            return self._monitor.begin(is_service=is_service)
        return None

    async def _try(
        self, request: ProcessRequest, on_output: OnOutput | None
    ) -> tuple[SandboxSession, CommandOutcome | None]:
        """No outcome where no slot was available."""
        session = await self._session(request)
        environment = _environment(session, request)
        session.busy += 1
        try:
            await session.wait_covered()
            slot = await slot_for(session, request)
            self._monitor.ready()
            command = ConfinedCommand(session, slot, on_output, request.limits)
            return session, await command.run(_with_diffs(session, request), environment, self._devnull)
        except Unavailable as problem:
            self._last_failure = str(problem)
            return session, None
        finally:
            session.busy -= 1
            if self._trimming is None:
                self._trimming = asyncio.get_running_loop().call_later(_IDLE_AFTER, self._trim)

    def _cover(self, found: CoveredPaths) -> None:
        for session in self._sessions.values():
            hidden = found.hidden_from(session.reads)
            if not (hidden or found.guarded):
                continue
            if session.alive:
                session.cover(hidden, found.guarded)
            if session.confinement is Confinement.TRY:
                self._trials.spoil(session, "protected files of the workspace were replaced meanwhile")

    def _service_ended(self, session: SandboxSession, run_id: int | None) -> None:
        session.busy -= 1
        session.lent -= 1
        if run_id is not None:
            self._monitor.end_later(run_id)

    def _check(self, request: ProcessRequest) -> None:
        if request.network == "guarded" and self._serve is None:
            raise ToolError(ErrorCode.PERMISSION, "network: guarded needs the guarding proxy, which is not running")
        if request.allowed_programs and os.path.basename(request.argv[0]) not in request.allowed_programs:
            allowed = ", ".join(request.allowed_programs)
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"{request.argv[0]!r} is not in allowed_commands: {allowed}")
        if not request.private_directory and not self._layout.contains(request.directory):
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
            request.confinement,
            request.reads,
            request.hosts if request.network == "guarded" else None,
            request.allowed_programs,
            self._monitor.neutral() if request.neutral_git else NO_COVERS,
            self._monitor.history() if request.hides_history else (),
        )

    async def _build(self, request: ProcessRequest) -> SandboxSession:
        self._make_room()
        if self._devnull < 0:
            self._devnull = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        found = self._monitor.found()
        neutral = self._monitor.neutral() if request.neutral_git else NO_COVERS
        history = self._monitor.history() if request.hides_history else ()
        shown = found._replace(hidden=(*found.hidden, *neutral.hidden, *history), contents=neutral.contents)
        session = await self._builder.build(request, shown)
        if session.has_namespaces:
            self._monitor.note_covered(found)
        later = self._monitor.found()
        if later != found:  # paths changed while the session was being built
            session.cover(later.hidden_from(session.reads), later.guarded)
        if session.listener is not None and self._serve is not None:
            self._serving[session] = asyncio.create_task(self._serve(session.listener, request.hosts))
        return session

    def _make_room(self) -> None:
        """Close sessions without commands, oldest first: those that died, and those beyond the most that are kept."""
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
        self._obstacle.close()
        await self._monitor.close()
        serving = list(self._serving.values())
        for session in self._sessions.values():
            self._close(session)
        self._sessions.clear()
        await asyncio.gather(*serving, return_exceptions=True)
        if self._devnull >= 0:
            os.close(self._devnull)
            self._devnull = -1


def _unavailable(reason: str) -> ToolError:
    return ToolError(ErrorCode.TOOL_EXEC, f"the sandbox failed: {reason}")


def _with_diffs(session: SandboxSession, request: ProcessRequest) -> ProcessRequest:
    """Where git's settings are covered, no repository can name a program for diffs, and git may show them."""
    if not request.neutral_git or not session.has_namespaces or NO_EXTERNAL_DIFF not in request.environment:
        return request
    kept = {name: value for name, value in request.environment.items() if name != NO_EXTERNAL_DIFF}
    return replace(request, environment=kept)


def _environment(session: SandboxSession, request: ProcessRequest) -> Mapping[str, str]:
    if request.network != "guarded":
        return BASE_ENVIRONMENT
    if not session.has_namespaces:
        message = "network: guarded needs a network namespace, which this machine does not support (toolreeve doctor)"
        raise ToolError(ErrorCode.PERMISSION, message)
    return {**BASE_ENVIRONMENT, **proxy_environment()}
