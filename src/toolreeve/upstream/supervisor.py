"""Is the server there? A keeper for each connects, lists, reconnects and restarts it, for as long as the runtime lives.

Nobody waits longer for a server to come back than they said they would.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from toolreeve.core.errors import ToolError, describe_crash
from toolreeve.core.mcp import Era
from toolreeve.upstream.connections import Connections, Dial, Identity
from toolreeve.upstream.scrubber import Scrubber
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.tools.listing import CAPABILITIES, list_all
from toolreeve.upstream.tools.subscriptions import Subscriptions
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable

logger = logging.getLogger(__name__)

FIRST_REST = 0.5
LONGEST_REST = 60.0
STEADY = 10.0
"""Seconds after which a server that goes away has not failed, but has been there."""
HOPELESS = 3
"""Failures in a row after which a call is no longer kept waiting for a server."""
RELIST_EVERY = 0.2


class ServerState(StrEnum):
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


class ServerSupervisor:
    """`notice` hears what the server says unasked, `tell` what becomes of it; `draw` gives chance in [0, 1)."""

    def __init__(
        self,
        spec: ServerSpec,
        dial: Dial,
        identity: Identity,
        *,
        veil: Scrubber,
        draw: Callable[[], float],
        notice: Notice,
        tell: Tell,
    ) -> None:
        self.spec = spec
        self.shelf: Shelf | None = None
        self.state = ServerState.CONNECTING if spec.enabled else ServerState.OFF
        self.problem = ""
        self.subscriptions = Subscriptions()
        self._connections = Connections(spec, dial, identity, self._hear, self._lost, veil)
        self.find, self.tell = self._connections.find, self._connections.tell
        self.set_log_level = self._connections.set_log_level
        self._veil, self._draw, self._notice, self._tell = veil, draw, notice, tell
        self._failures = 0
        self._attempts = 0
        self._stale = False
        self._stirred, self._wanted, self._news = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._gone = asyncio.Event()

    @property
    def main(self) -> UpstreamSession | None:
        """The session that lists, if it is there."""
        main = self._connections.main
        return None if main is None or not main.alive else main

    def turn_off(self, problem: str) -> None:
        self._turn(ServerState.OFF, problem)

    async def reach(self, era: Era | None, seconds: float) -> UpstreamSession:
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
            raise ServerUnavailable(self.problem or f"it did not answer within {seconds:g} s")
        return found

    async def _come_up(self) -> None:
        """Wait for the main session. One that has failed for good is tried once more, and no longer waited for."""
        before = self._attempts
        self._wanted.set()
        while self.main is None or self.state is not ServerState.UP:
            if self.state is ServerState.OFF or (self.state is ServerState.FAILED and self._attempts > before):
                raise ServerUnavailable(self.problem)
            await self._news.wait()

    async def settled(self) -> None:
        while self.state is ServerState.CONNECTING:
            await self._news.wait()

    async def keep(self) -> None:
        """Runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._wanted.clear()
            try:
                session = await self._connect(loop.time() + self.spec.connect_timeout)
            except Exception as problem:  # whatever it is, it concerns this server alone
                with contextlib.suppress(Exception):  # what is left of it ends with the runtime
                    await self._connections.drop_main()
                self._fell(_told(problem, self.spec))
            else:
                since = loop.time()
                await self._tend(session)
                if loop.time() - since >= STEADY:
                    self._failures = 0
                await self.subscriptions.detach()
                self._turn(ServerState.AWAY, self.problem)
            self._failures += 1
            await self._rest()

    async def _connect(self, end: float) -> UpstreamSession:
        self._stale = False
        self._gone.clear()
        session = await self._connections.open_main(self.spec.connect_timeout)
        async with asyncio.timeout_at(end):
            await self._list(session)
            await self.subscriptions.attach(session)
        self._attempts += 1
        self._turn(ServerState.UP, "")
        return session

    async def _list(self, session: UpstreamSession) -> None:
        has_tools = CAPABILITIES["tools"] in session.server_capabilities
        listed = await list_all(session.request, "tools") if has_tools else []
        if self.shelf is not None:
            session.tool_schemas.update(await self.shelf.put(listed))

    async def _tend(self, session: UpstreamSession) -> None:
        """Look after a connection until it is lost."""
        while session.alive:
            await self._stirred.wait()
            self._stirred.clear()
            if session.alive and self._stale:
                self._stale = False
                await self._relist(session)

    async def _relist(self, session: UpstreamSession) -> None:
        """A server that always has news gets a fifth of our time at most."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._try_to_list(session)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(RELIST_EVERY, 4 * (loop.time() - began))):
                await self._gone.wait()

    async def _try_to_list(self, session: UpstreamSession) -> None:
        try:
            async with asyncio.timeout(self.spec.connect_timeout):
                await self._list(session)
        except Exception as problem:  # the tools stay as they were
            told = self._veil.text(_told(problem, self.spec))
            logger.warning("the server %r could not be listed again: %s", self.spec.name, told)

    async def _rest(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(rest(self._failures, self._draw())):
                await self._wanted.wait()

    def _fell(self, problem: str) -> None:
        self._attempts += 1
        came_before = self.state in (ServerState.UP, ServerState.AWAY)
        hopeless = not came_before or self._failures >= HOPELESS
        self._turn(ServerState.FAILED if hopeless else ServerState.AWAY, self._veil.text(problem))

    def _turn(self, state: ServerState, problem: str) -> None:
        before, self.state, self.problem = self.state, state, problem
        self._news.set()
        self._news = asyncio.Event()
        if state is ServerState.UP:
            self._tell("server_up", {"server": self.spec.name})
        elif state in (ServerState.AWAY, ServerState.FAILED) and state is not before:
            self._tell("server_away", {"server": self.spec.name, "state": str(state), "reason": problem})

    def _lost(self, reason: str) -> None:
        self.problem = self._veil.text(reason)
        self._gone.set()
        self._stirred.set()

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/tools/list_changed":
            self._stale = True
            self._stirred.set()
        self._notice(method, params)

    async def close(self) -> None:
        self.turn_off("the runtime was closed")
        await self.subscriptions.detach()
        await self._connections.close()


def _shortly_before(seconds: float) -> float:
    """So that whoever gives up first is the one who knows why."""
    return seconds - min(0.5, seconds / 10)


def _told(problem: Exception, spec: ServerSpec) -> str:
    match problem:
        case TimeoutError():
            return f"it could not be connected within {spec.connect_timeout:g} s"
        case ServerUnavailable() | ToolError() | OSError():
            return str(problem)
        case RemoteError():
            return f"it answered with an error: {problem.message[:1000]}"
        case _:
            return describe_crash(problem)
