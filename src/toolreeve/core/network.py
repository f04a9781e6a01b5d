"""Connector: the capability that checks a host, then connects to it."""

import asyncio
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """An open connection to a checked address. `rule` is the rule that allowed it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str
    rule: str


class Connector(Protocol):
    async def check(self, host: str, port: int, method: str) -> None:
        """Raises ToolError(URL_FORBIDDEN) if the host's name alone rules it out."""
        ...

    async def dial(self, host: str, port: int, *, method: str) -> Connection:
        """Raises ToolError: URL_FORBIDDEN if it may not be reached, HTTP_ERROR or HTTP_TIMEOUT if it cannot."""
        ...
