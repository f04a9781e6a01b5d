"""Supervisor of one server: connects, lists, reconnects and restarts it.

It runs for as long as the runtime. No caller waits longer for a server to come back than its own timeout.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from toolreeve.core.errors import ToolError, describe_crash
from toolreeve.core.mcp import Era
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.upstream.connections import Connections
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.status import ServerState
from toolreeve.upstream.tools.listing import CAPABILITIES, list_all
from toolreeve.upstream.tools.subscriptions import Subscriptions
from toolreeve.upstream.transports.transport import Connect, Identity, RemoteError, ServerUnavailable

logger = logging.getLogger(__name__)

FIRST_BACKOFF = 0.5
MAX_BACKOFF = 60.0
STEADY_SECONDS = 10.0
"""A connection that lasted this long resets the back-off when it is lost."""
MAX_FAILURES = 3
"""Consecutive failures after which calls no longer wait for the server."""
RELIST_SECONDS = 0.2


class ToolSink(Protocol):
    """Receives the tools that a server lists."""

    async def update(self, definitions: Sequence[Any]) -> Mapping[str, Any]:
        """The input schemas of the tools that are now offered, by the server's names for them."""
        ...


OnNotification = Callable[[str, Mapping[str, Any]], None]
Emit = Callable[[str, Mapping[str, Any]], None]


def backoff(failures: int, jitter: float) -> float:
    """Seconds until the next attempt. `jitter` in [0, 1) keeps many servers from reconnecting at the same moment."""
    if failures <= 0:
        return 0.0
    longest = min(FIRST_BACKOFF * 2.0 ** min(failures - 1, 16), MAX_BACKOFF)
    return longest * (0.5 + jitter / 2)


class ServerSupervisor:
    """`on_notification` gets the server's notifications, `emit` the events about its state; `jitter` draws from
    [0, 1)."""

    def __init__(
        self,
        spec: ServerSpec,
        connect: Connect,
        identity: Identity,
        *,
        scrubber: Scrubber,
        jitter: Callable[[], float],
        on_notification: OnNotification,
        emit: Emit,
    ) -> None:
        self.spec = spec
        self.tools: ToolSink | None = None
        self.state = ServerState.CONNECTING if spec.enabled else ServerState.OFF
        self.problem = ""
        self.subscriptions = Subscriptions()
        self._connections = Connections(spec, connect, identity, self._notified, self._lost, scrubber)
        self.find = self._connections.find
        self.notify = self._connections.notify
        self.set_log_level = self._connections.set_log_level
        self._scrubber = scrubber
        self._jitter = jitter
        self._on_notification = on_notification
        self._emit = emit
        self._failures = 0
        self._attempts = 0
        self._is_stale = False
        self._wake = asyncio.Event()
        self._wanted = asyncio.Event()
        self._state_changed = asyncio.Event()
        self._disconnected = asyncio.Event()

    @property
    def main(self) -> UpstreamSession | None:
        """The session that lists, while it is alive."""
        main = self._connections.main
        return None if main is None or not main.alive else main

    def turn_off(self, problem: str) -> None:
        self._set_state(ServerState.OFF, problem)

    async def reach(self, era: Era | None, seconds: float) -> UpstreamSession:
        """A session, as soon as there is one. Raises ServerUnavailable a little before the deadline."""
        try:
            async with asyncio.timeout(_shortly_before(seconds)):
                await self._wait_until_up()
                found = self._connections.find(era)
                if found is None and era is not None:
                    found = await self._connections.open_other(era, self.spec.connect_timeout)
        except TimeoutError:
            found = None
        if found is None:
            raise ServerUnavailable(self.problem or f"it did not respond within {seconds:g} s")
        return found

    async def _wait_until_up(self) -> None:
        """A server that has failed for good gets one more attempt, and is then no longer waited for."""
        before = self._attempts
        self._wanted.set()
        while self.main is None or self.state is not ServerState.UP:
            if self.state is ServerState.OFF or (self.state is ServerState.FAILED and self._attempts > before):
                raise ServerUnavailable(self.problem)
            await self._state_changed.wait()

    async def wait_settled(self) -> None:
        """Until the first attempt to connect has ended, either way."""
        while self.state is ServerState.CONNECTING:
            await self._state_changed.wait()

    async def restart(self) -> None:
        """Drop the connection and connect anew at once."""
        self._failures = 0
        await self._connections.drop_main()
        self._lost("it is being restarted")
        self._wanted.set()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._wanted.clear()
            try:
                session = await self._connect(loop.time() + self.spec.connect_timeout)
            except Exception as problem:  # any failure concerns this server alone
                with contextlib.suppress(Exception):  # a session that cannot be closed now ends with the runtime
                    await self._connections.drop_main()
                self._failed(_describe(problem, self.spec))
            else:
                since = loop.time()
                await self._watch(session)
                if loop.time() - since >= STEADY_SECONDS:
                    self._failures = 0
                await self.subscriptions.detach()
                self._set_state(ServerState.AWAY, self.problem)
            self._failures += 1
            await self._back_off()

    async def _connect(self, end: float) -> UpstreamSession:
        self._is_stale = False
        self._disconnected.clear()
        session = await self._connections.open_main(self.spec.connect_timeout)
        async with asyncio.timeout_at(end):
            await self._list_tools(session)
            await self.subscriptions.attach(session)
        self._attempts += 1
        self._set_state(ServerState.UP, "")
        return session

    async def _list_tools(self, session: UpstreamSession) -> None:
        has_tools = CAPABILITIES["tools"] in session.server_capabilities
        listed = await list_all(session.request, "tools") if has_tools else []
        if self.tools is not None:
            session.tool_schemas.update(await self.tools.update(listed))

    async def _watch(self, session: UpstreamSession) -> None:
        """Lists again when the server's tools change; returns when the connection is lost."""
        while session.alive:
            await self._wake.wait()
            self._wake.clear()
            if session.alive and self._is_stale:
                self._is_stale = False
                await self._relist(session)

    async def _relist(self, session: UpstreamSession) -> None:
        """A server whose list changes all the time takes at most a fifth of our time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await self._try_to_list(session)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(RELIST_SECONDS, 4 * (loop.time() - began))):
                await self._disconnected.wait()

    async def _try_to_list(self, session: UpstreamSession) -> None:
        try:
            async with asyncio.timeout(self.spec.connect_timeout):
                await self._list_tools(session)
        except Exception as problem:  # the tools stay as they were
            why = self._scrubber.text(_describe(problem, self.spec))
            logger.warning("server %r: its tools could not be listed again: %s", self.spec.name, why)

    async def _back_off(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(backoff(self._failures, self._jitter())):
                await self._wanted.wait()

    def _failed(self, problem: str) -> None:
        self._attempts += 1
        was_connected = self.state in (ServerState.UP, ServerState.AWAY)
        gives_up = not was_connected or self._failures >= MAX_FAILURES
        self._set_state(ServerState.FAILED if gives_up else ServerState.AWAY, self._scrubber.text(problem))

    def _set_state(self, state: ServerState, problem: str) -> None:
        before = self.state
        self.state = state
        self.problem = problem
        self._state_changed.set()
        self._state_changed = asyncio.Event()
        if state is ServerState.UP:
            self._emit("server_up", {"server": self.spec.name})
        elif state in (ServerState.AWAY, ServerState.FAILED) and state is not before:
            self._emit("server_away", {"server": self.spec.name, "state": str(state), "reason": problem})

    def _lost(self, reason: str) -> None:
        self.problem = self._scrubber.text(reason)
        self._disconnected.set()
        self._wake.set()

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/tools/list_changed":
            self._is_stale = True
            self._wake.set()
        self._on_notification(method, params)

    async def close(self) -> None:
        self.turn_off("the runtime was closed")
        await self.subscriptions.detach()
        await self._connections.close()


def _shortly_before(seconds: float) -> float:
    """So that this timeout, which knows the reason, expires before the caller's."""
    return seconds - min(0.5, seconds / 10)


def _describe(problem: Exception, spec: ServerSpec) -> str:
    match problem:
        case TimeoutError():
            return f"it did not connect within {spec.connect_timeout:g} s (connect_timeout)"
        case ServerUnavailable() | ToolError() | OSError():
            return str(problem)
        case RemoteError():
            return f"it responded with an error: {problem.message[:1000]}"
        case _:
            return describe_crash(problem)
