"""Is the server there, and how is it reached? One keeper for each: it connects, lists and reconnects.

A call never waits longer than its own deadline for a server to come back, and is never made twice unless the user has
said that this does no harm.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError, describe_crash
from toolreeve.core.peer import Era
from toolreeve.remote import bridge
from toolreeve.remote.answer import failure_of
from toolreeve.remote.connections import Connections, Dial, Identity
from toolreeve.remote.line import RemoteError, ServerAway
from toolreeve.remote.listing import CAPABILITIES, Listed, list_all
from toolreeve.remote.servers import ServerSpec
from toolreeve.remote.session import Session
from toolreeve.remote.subscriptions import Subscriptions
from toolreeve.remote.veil import Veil

logger = logging.getLogger(__name__)

FIRST_REST = 0.5
LONGEST_REST = 60.0
STEADY = 10.0
"""Seconds after which a server that goes away has not failed, but has been there."""
HOPELESS = 3
RELIST_EVERY = 0.2


class State(StrEnum):
    CONNECTING = "connecting"
    UP = "up"
    AWAY = "away"
    FAILED = "failed"
    OFF = "off"


class Shelf(Protocol):
    """Takes what a server lists, and makes tools of it."""

    async def put(self, definitions: Sequence[Any]) -> Mapping[str, Any]:
        """The input schemas of those that are now to be had, by the server's names for them."""
        ...


Notice = Callable[[str, Mapping[str, Any]], None]
Tell = Callable[[str, Mapping[str, Any]], None]


def rest(failures: int, chance: float) -> float:
    """Seconds until the next attempt. Chance keeps many from coming back at the same moment."""
    return min(FIRST_REST * 2.0 ** min(failures - 1, 16), LONGEST_REST) * (0.5 + chance / 2) if failures > 0 else 0.0


class Upstream:
    """One server. `notice` hears what it says unasked, `tell` what becomes of it."""

    def __init__(
        self,
        spec: ServerSpec,
        dial: Dial,
        identity: Identity,
        *,
        timeout: float,
        draw: Callable[[], float],
        notice: Notice,
        tell: Tell,
    ) -> None:
        self.spec = spec
        self.shelf: Shelf | None = None
        self.state = State.CONNECTING if spec.enabled else State.OFF
        self.problem = ""
        self.veil = Veil(spec.secret_values)
        self.subscriptions = Subscriptions()
        self._connections = Connections(spec, dial, identity, self._hear, self._lost)
        self._timeout, self._draw, self._notice, self._tell = timeout, draw, notice, tell
        self._failures = 0
        self._attempts = 0
        self._stale = False
        self._stirred, self._wanted, self._news = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._gone = asyncio.Event()
        self._lists: dict[Listed, list[Any]] = {}

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def main(self) -> Session | None:
        return self._connections.main

    @property
    def era(self) -> Era | None:
        main = self.main
        return None if main is None or not main.alive else main.era

    @property
    def capabilities(self) -> Mapping[str, Any]:
        main = self.main
        return {} if main is None else main.server_capabilities

    @property
    def is_settled(self) -> bool:
        """Whether the first attempt to connect has ended, either way."""
        return self.state is not State.CONNECTING

    async def carry(
        self, method: str, params: Mapping[str, Any], call: ToolCall, *, repeatable: bool = False
    ) -> dict[str, Any]:
        """A request on behalf of a call. Raises ToolError(UPSTREAM)."""
        era = None if call.peer is None else call.peer.era
        seconds = float(call.timeout or self.spec.timeout or self._timeout)
        try:
            session = self._connections.find(era) or await self._reach(era, seconds)
            try:
                return self.veil.over(await bridge.ask(session, method, params, call.peer))
            except ServerAway:
                if not repeatable:
                    raise
            session = self._connections.find(era) or await self._reach(era, seconds)
            return self.veil.over(await bridge.ask(session, method, params, call.peer))
        except (RemoteError, ServerAway) as problem:
            raise self._failure(problem) from None

    async def subscribe(self, params: Mapping[str, Any], call: ToolCall, *, ends: bool = False) -> dict[str, Any]:
        """Begin or end to hear of a resource's changes. Raises ToolError(UPSTREAM)."""
        try:
            if self.era is None:
                await self._reach(None, float(call.timeout or self.spec.timeout or self._timeout))
            return await (self.subscriptions.remove(params) if ends else self.subscriptions.add(params))
        except (RemoteError, ServerAway) as problem:
            raise self._failure(problem) from None

    def _failure(self, problem: RemoteError | ServerAway) -> ToolError:
        if isinstance(problem, RemoteError):
            shown = self.veil.over(problem.to_dict())
            return failure_of(RemoteError(shown["code"], shown["message"], shown.get("data")), self.name)
        return ToolError(
            ErrorCode.UPSTREAM,
            f"the server {self.name!r} is away: {self.veil.text(str(problem))}",
            suggestions=(f"toolreeve servers test {self.name}",),
        )

    async def _reach(self, era: Era | None, seconds: float) -> Session:
        """A session to speak over, as soon as there is one. Raises ServerAway a little before the deadline."""
        try:
            async with asyncio.timeout(_shortly_before(seconds)):
                await self._come_up()
                found = self._connections.find(era)
                if found is None and era is not None:
                    found = await self._connections.open_other(era, self.spec.connect_timeout)
        except TimeoutError:
            found = None
        if found is None:
            raise ServerAway(self.problem or f"it did not answer within {seconds:g} s")
        return found

    async def _come_up(self) -> None:
        """Wait for the main session. One that has failed for good is tried once more, and no longer waited for."""
        before = self._attempts
        self._wanted.set()
        while self.era is None or self.state is not State.UP:
            if self.state is State.OFF or (self.state is State.FAILED and self._attempts > before):
                raise ServerAway(self.problem)
            await self._news.wait()

    async def settled(self) -> None:
        while not self.is_settled:
            await self._news.wait()

    async def keep(self) -> None:
        """Runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._wanted.clear()
            try:
                session = await self._connect(loop.time() + self.spec.connect_timeout)
            except Exception as problem:  # whatever it is, it concerns this server alone
                await self._connections.drop_main()
                self._fell(_told(problem, self.spec))
            else:
                since = loop.time()
                await self._tend(session)
                self._failures = 0 if loop.time() - since >= STEADY else self._failures
                await self.subscriptions.detach()
                self._turn(State.AWAY, self.problem)
            self._failures += 1
            await self._rest()

    async def _connect(self, end: float) -> Session:
        self._stale = False
        self._gone.clear()
        session = await self._connections.open_main(self.spec.connect_timeout)
        self._lists.clear()
        async with asyncio.timeout_at(end):
            await self._list(session)
            await self.subscriptions.attach(session)
        self._attempts += 1
        self._turn(State.UP, "")
        return session

    async def _list(self, session: Session) -> None:
        has_tools = CAPABILITIES["tools"] in session.server_capabilities
        listed = await list_all(session.request, "tools") if has_tools else []
        if self.shelf is not None:
            session.tool_schemas.update(await self.shelf.put(listed))

    async def _tend(self, session: Session) -> None:
        """Look after a connection until it is lost."""
        while session.alive:
            await self._stirred.wait()
            self._stirred.clear()
            if session.alive and self._stale:
                self._stale = False
                await self._relist(session)

    async def _relist(self, session: Session) -> None:
        """A server that always has news gets a fifth of our time at most."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._try_to_list(session)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(RELIST_EVERY, 4 * (loop.time() - began))):
                await self._gone.wait()

    async def _try_to_list(self, session: Session) -> None:
        try:
            async with asyncio.timeout(self.spec.connect_timeout):
                await self._list(session)
        except Exception as problem:  # the tools stay as they were
            logger.warning("the server %r could not be listed again: %s", self.name, _told(problem, self.spec))

    async def _rest(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(rest(self._failures, self._draw())):
                await self._wanted.wait()

    def _fell(self, problem: str) -> None:
        self._attempts += 1
        came_before = self.state in (State.UP, State.AWAY)
        hopeless = not came_before or self._failures >= HOPELESS
        self._turn(State.FAILED if hopeless else State.AWAY, self.veil.text(problem))

    def _turn(self, state: State, problem: str) -> None:
        before, self.state, self.problem = self.state, state, problem
        self._news.set()
        self._news = asyncio.Event()
        if state is State.UP:
            self._tell("server_up", {"server": self.name})
        elif state in (State.AWAY, State.FAILED) and state is not before:
            self._tell("server_away", {"server": self.name, "state": str(state), "reason": problem})

    def _lost(self, reason: str) -> None:
        self.problem = self.veil.text(reason)
        self._gone.set()
        self._stirred.set()

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/tools/list_changed":
            self._stale = True
            self._stirred.set()
        elif method.endswith("/list_changed"):
            self._lists.clear()
        self._notice(method, params)

    async def offers(self, listed: Listed) -> Sequence[Any]:
        """Its resources, templates or prompts, as it lists them. Raises RemoteError, ServerAway, TimeoutError."""
        if listed not in self._lists:
            session = self.main
            if session is None or CAPABILITIES[listed] not in session.server_capabilities:
                return ()
            async with asyncio.timeout(self.spec.connect_timeout):
                self._lists[listed] = await list_all(session.request, listed)
        return self._lists[listed]

    async def close(self) -> None:
        self._turn(State.OFF, "the runtime was closed")
        await self.subscriptions.detach()
        await self._connections.close()


def _shortly_before(seconds: float) -> float:
    """So that whoever gives up first is the one who knows why."""
    return seconds - min(0.5, seconds / 10)


def _told(problem: Exception, spec: ServerSpec) -> str:
    match problem:
        case TimeoutError():
            return f"it could not be connected within {spec.connect_timeout:g} s"
        case ServerAway() | ToolError() | OSError():
            return str(problem)
        case RemoteError():
            return f"it answered with an error: {problem.message[:1000]}"
        case _:
            return describe_crash(problem)
