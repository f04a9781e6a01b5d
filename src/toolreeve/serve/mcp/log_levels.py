"""The log level of upstream servers: the most verbose one set.

Each client still gets only its own level. A client that sets none changes nothing: servers keep their default.
"""

from typing import Protocol

from toolreeve.serve.mcp.protocol import LOG_LEVELS
from toolreeve.serve.mcp.request_context import ClientInfo


class Loggers(Protocol):
    async def set_log_level(self, level: str) -> None: ...


class LogLevels:
    def __init__(self, loggers: Loggers) -> None:
        self._loggers = loggers
        self._levels: dict[str, str] = {}
        self._current: str | None = None

    async def set(self, client: ClientInfo, level: str) -> None:
        self._levels[client.session] = level
        await self._settle()

    async def forget(self, client: ClientInfo) -> None:
        """The client has disconnected."""
        if self._levels.pop(client.session, None) is not None:
            await self._settle()

    async def _settle(self) -> None:
        wanted = min(self._levels.values(), key=LOG_LEVELS.index, default=None)
        if wanted is not None and wanted != self._current:
            self._current = wanted
            await self._loggers.set_log_level(wanted)
