"""The sessions of one server, at most one per protocol era.

The first is the main session: it lists, and serves callers without an era of their own. Another is opened when a caller
of the other era needs it. A server that refuses that era is not asked again, and is called in its own era instead; one
that could merely not be reached in it is asked again after the next reconnect.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from toolreeve.core.mcp import Era
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.tools.subscriptions import Subscriptions
from toolreeve.upstream.transports.transport import (
    Connect,
    Identity,
    RemoteError,
    RequestRefused,
    ServerUnavailable,
)

CAPABILITIES: Mapping[str, Any] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}
"""What a legacy server may request from its caller; a caller without the capability is answered for."""

SSE_SECONDS = 10.0
"""Timeout of the SSE handshake with a server that does not know streamable HTTP."""

LOG_LEVEL_SECONDS = 5.0
"""Timeout of `logging/setLevel`."""

_MIN_SECONDS = 0.1


class Connections:
    """Opens and closes the sessions. `on_notification` gets the server's notifications, `on_lost` is called when the
    main session ends; `scrubber` redacts everything that the server sends."""

    def __init__(
        self,
        spec: ServerSpec,
        connect: Connect,
        identity: Identity,
        on_notification: Callable[[str, Mapping[str, Any]], None],
        on_lost: Callable[[str], None],
        scrubber: Scrubber,
    ) -> None:
        self._spec = spec
        self._connect = connect
        self._identity = identity
        self._on_notification = on_notification
        self._on_lost = on_lost
        self._scrubber = scrubber
        self._kind = spec.kind
        self._sessions: dict[Era, UpstreamSession] = {}
        self._refused: set[Era] = set()
        self._unreachable: set[Era] = set()
        self._open_lock = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._subscriptions = Subscriptions()
        self._log_level: str | None = None
        self.main: UpstreamSession | None = None

    def find(self, era: Era | None) -> UpstreamSession | None:
        """The session for a caller of this era, if none has to be opened."""
        main = self.main
        if main is None or not main.alive:
            return None
        if era is None or era is main.era or era in self._refused or era in self._unreachable:
            return main
        session = self._sessions.get(era)
        return session if session is not None and session.alive else None

    async def open_main(self, timeout: float) -> UpstreamSession:
        """Raises ServerUnavailable. A stdio server gets the legacy handshake first: not all survive the other."""
        await self.drop_main()
        self._unreachable.clear()
        if self._spec.kind == "http":
            self.main = await self._open_http_or_sse(timeout)
        elif self._spec.kind == "sse":
            self.main = await self._open_sse(timeout)
        elif self._spec.kind == "a2a":
            self.main = await self._open(Era.LEGACY, timeout, self._on_lost)
        else:
            self.main = await self._open_legacy_or_modern(timeout)
        replaced = self._sessions.get(self.main.era)
        self._sessions[self.main.era] = self.main
        if replaced is not None:
            await self._end(replaced)
        return self.main

    async def drop_main(self) -> None:
        session = self.main
        self.main = None
        if session is not None:
            if self._sessions.get(session.era) is session:
                del self._sessions[session.era]
            await self._end(session)

    async def _end(self, session: UpstreamSession) -> None:
        """Closing goes on when the caller is cancelled; `close` waits for it again."""
        closing = asyncio.create_task(session.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)

    async def _open_http_or_sse(self, timeout: float) -> UpstreamSession:
        """A URL alone does not say which of the two transports it serves, and most clients' files do not either."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        self._kind = "http"
        try:
            return await self._open(None, timeout, self._on_lost)
        except RequestRefused as refusal:
            if not refusal.not_mcp:
                raise
            left = max(end - loop.time(), _MIN_SECONDS)
            try:
                return await self._open_sse(min(left, SSE_SECONDS))
            except ServerUnavailable:
                raise refusal from None

    async def _open_sse(self, timeout: float) -> UpstreamSession:
        self._kind = "sse"
        return await self._open(Era.LEGACY, timeout, self._on_lost)

    async def _open_legacy_or_modern(self, timeout: float) -> UpstreamSession:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        if Era.LEGACY not in self._refused:
            try:
                return await self._open(Era.LEGACY, timeout, self._on_lost)
            except RequestRefused:
                self._refused.add(Era.LEGACY)
        return await self._open(Era.MODERN, max(end - loop.time(), _MIN_SECONDS), self._on_lost)

    async def open_other(self, era: Era, timeout: float) -> UpstreamSession:
        """For a caller of another era than the main session's. Raises ServerUnavailable without a main session."""
        async with self._open_lock:
            if (found := self.find(era)) is not None:
                return found
            main = self.main
            if main is None or not main.alive:
                raise ServerUnavailable("the connection was lost")
            session = await self._try_era(era, timeout)
            if session is None:
                return main
            session.tool_schemas = main.tool_schemas
            if (old := self._sessions.pop(era, None)) is not None:
                await self._end(old)
            self._sessions[era] = session
            await self._subscriptions.attach(session)  # a stdio server runs twice: either process may notify
            return session

    async def _try_era(self, era: Era, timeout: float) -> UpstreamSession | None:
        if self._kind in ("sse", "a2a"):
            return None
        try:
            return await self._open(era, timeout, None)
        except RequestRefused:
            self._refused.add(era)
        except ServerUnavailable:
            self._unreachable.add(era)
        return None

    async def _open(self, era: Era | None, timeout: float, on_lost: Callable[[str], None] | None) -> UpstreamSession:
        session = UpstreamSession(
            self._connect(replace(self._spec, kind=self._kind), self._scrubber),
            client_info=self._identity.info,
            capabilities=CAPABILITIES,
            on_notification=self._on_notification,
            on_lost=on_lost,
            roots=self._identity.roots,
            scrubber=self._scrubber,
        )
        await session.open(era, timeout)
        await self._send_log_level(session)
        return session

    async def set_log_level(self, level: str) -> None:
        """The level from now on, where the protocol allows to set it outside of a request."""
        self._log_level = level
        await asyncio.gather(*map(self._send_log_level, list(self._sessions.values())))

    async def _send_log_level(self, session: UpstreamSession) -> None:
        if self._log_level is None or session.era is not Era.LEGACY or "logging" not in session.server_capabilities:
            return
        with suppress(RemoteError, ServerUnavailable, TimeoutError):  # log messages are filtered here as well
            await session.request("logging/setLevel", {"level": self._log_level}, timeout=LOG_LEVEL_SECONDS)

    def notify(self, method: str) -> None:
        """Send a notification that only the legacy era has."""
        for session in self._sessions.values():
            if session.era is Era.LEGACY:
                with suppress(ServerUnavailable):
                    session.notify(method)

    async def close(self) -> None:
        """End all sessions concurrently; when it returns, nothing of the server runs."""
        await self._subscriptions.detach()
        sessions = list(self._sessions.values())
        self._sessions = {}
        self.main = None
        closing = (*self._closing, *(session.close() for session in sessions))
        await asyncio.gather(*closing, return_exceptions=True)
