"""Over which connection is a server spoken to? One session for each era that is wanted and that the server speaks.

The first is the main one: it lists, and serves whoever has no era of their own. Another is opened when a caller of the
other era comes; a server that refuses that era is not asked again, and is spoken to in its own. One that merely could
not be reached in it is asked again after the next reconnect.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from toolreeve.core.mcp import Era
from toolreeve.upstream.scrubber import Scrubber
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.tools.subscriptions import Subscriptions
from toolreeve.upstream.transports.transport import RemoteError, RequestRefused, ServerUnavailable, Transport

Dial = Callable[[ServerSpec, Scrubber], Transport]
"""What is learnt on the way and must not come back is told to the veil."""
CAPABILITIES: Mapping[str, Any] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}
"""What a server of the legacy era may ask of whoever called; who cannot be asked answers so when it comes to it."""


OLDER_SECONDS = 10.0
"""How long a server that knows nothing of streamable HTTP may take to begin in the older way."""

WISH_SECONDS = 5.0
"""How long a server may take to note how much it is to log; it is not waited for any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who we are to servers."""

    info: Mapping[str, Any]
    roots: Sequence[Mapping[str, Any]] = ()


class Connections:
    """The sessions of one server. `hear` gets its notices, `lost` is called when the main session ends; `veil` lies
    over everything that it says."""

    def __init__(
        self,
        spec: ServerSpec,
        dial: Dial,
        identity: Identity,
        hear: Callable[[str, Mapping[str, Any]], None],
        lost: Callable[[str], None],
        veil: Scrubber,
    ) -> None:
        self._spec, self._dial, self._identity, self._hear, self._lost = spec, dial, identity, hear, lost
        self._veil = veil
        self._kind = spec.kind
        self._sessions: dict[Era, UpstreamSession] = {}
        self._refused: set[Era] = set()
        self._unmet: set[Era] = set()
        self._opening = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        self._changes = Subscriptions()
        self._log_level: str | None = None
        self.main: UpstreamSession | None = None

    def find(self, era: Era | None) -> UpstreamSession | None:
        """The session that a caller of this era is served on, if nothing has to be opened for it."""
        main = self.main
        if main is None or not main.alive:
            return None
        if era is None or era is main.era or era in self._refused or era in self._unmet:
            return main
        session = self._sessions.get(era)
        return session if session is not None and session.alive else None

    async def open_main(self, timeout: float) -> UpstreamSession:
        """Raises ServerAway. Servers behind a pipe are met in the legacy era first: not all survive another."""
        await self.drop_main()
        self._unmet.clear()
        if self._spec.kind == "http":
            self.main = await self._open_newer_first(timeout)
        elif self._spec.kind == "sse":
            self.main = await self._open_older(timeout)
        else:
            self.main = await self._open_older_first(timeout)
        other, self._sessions[self.main.era] = self._sessions.get(self.main.era), self.main
        if other is not None:
            await self._end(other)
        return self.main

    async def drop_main(self) -> None:
        session, self.main = self.main, None
        if session is not None:
            if self._sessions.get(session.era) is session:
                del self._sessions[session.era]
            await self._end(session)

    async def _end(self, session: UpstreamSession) -> None:
        """Goes on when whoever waits for it is cancelled; `close` waits for it again."""
        ending = asyncio.create_task(session.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        await asyncio.shield(ending)

    async def _open_newer_first(self, timeout: float) -> UpstreamSession:
        """A URL alone does not say which of the two kinds on the web it leads to, and most clients' files do not."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        self._kind = "http"
        try:
            return await self._open(None, timeout, self._lost)
        except RequestRefused as refusal:
            if not refusal.unspoken:
                raise
            try:
                return await self._open_older(min(max(end - loop.time(), 0.1), OLDER_SECONDS))
            except ServerUnavailable:
                raise refusal from None

    async def _open_older(self, timeout: float) -> UpstreamSession:
        self._kind = "sse"
        return await self._open(Era.LEGACY, timeout, self._lost)

    async def _open_older_first(self, timeout: float) -> UpstreamSession:
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        if Era.LEGACY not in self._refused:
            try:
                return await self._open(Era.LEGACY, timeout, self._lost)
            except RequestRefused:
                self._refused.add(Era.LEGACY)
        return await self._open(Era.MODERN, max(end - loop.time(), 0.1), self._lost)

    async def open_other(self, era: Era, timeout: float) -> UpstreamSession:
        """For a caller of another era than the main session's. Raises ServerAway when there is none at all."""
        async with self._opening:
            if (found := self.find(era)) is not None:
                return found
            main = self.main
            if main is None or not main.alive:
                raise ServerUnavailable("the connection was lost")
            session = await self._try(era, timeout)
            if session is None:
                return main
            session.tool_schemas = main.tool_schemas
            if (old := self._sessions.pop(era, None)) is not None:
                await self._end(old)
            self._sessions[era] = session
            await self._changes.attach(session)  # a server behind a pipe runs twice: either may have news
            return session

    async def _try(self, era: Era, timeout: float) -> UpstreamSession | None:
        try:
            return None if self._kind == "sse" else await self._open(era, timeout, None)
        except RequestRefused:
            self._refused.add(era)
        except ServerUnavailable:
            self._unmet.add(era)
        return None

    async def _open(self, era: Era | None, timeout: float, lost: Callable[[str], None] | None) -> UpstreamSession:
        session = UpstreamSession(
            self._dial(replace(self._spec, kind=self._kind), self._veil),
            client_info=self._identity.info,
            capabilities=CAPABILITIES,
            on_notice=self._hear,
            on_lost=lost,
            roots=self._identity.roots,
            veil=self._veil,
        )
        await session.open(era, timeout)
        await self._tell_log_level(session)
        return session

    async def set_log_level(self, level: str) -> None:
        """How much the server is to log from now on, where the protocol lets it be told outside of a request."""
        self._log_level = level
        await asyncio.gather(*map(self._tell_log_level, list(self._sessions.values())))

    async def _tell_log_level(self, session: UpstreamSession) -> None:
        if self._log_level is None or session.era is not Era.LEGACY or "logging" not in session.server_capabilities:
            return
        with suppress(RemoteError, ServerUnavailable, TimeoutError):  # what it logs is filtered here all the same
            await session.request("logging/setLevel", {"level": self._log_level}, timeout=WISH_SECONDS)

    def tell(self, method: str) -> None:
        """A notification, to whoever is spoken to in the era that has such."""
        for session in self._sessions.values():
            if session.era is Era.LEGACY:
                with suppress(ServerUnavailable):
                    session.notify(method)

    async def close(self) -> None:
        """End all sessions, at once; when it returns, nothing of the server runs."""
        await self._changes.detach()
        sessions, self._sessions, self.main = list(self._sessions.values()), {}, None
        endings = (*self._ending, *(session.close() for session in sessions))
        await asyncio.gather(*endings, return_exceptions=True)
