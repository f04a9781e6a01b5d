"""Connector: the capability that checks a host, then connects to it."""

import asyncio
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """An open connection to an address that was judged. `address` and `rule` say where it went and why it might."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str
    rule: str


class Connector(Protocol):
    async def check(self, host: str, port: int, method: str) -> None:
        """Raises ToolError(URL_FORBIDDEN) where the host may not be reached, as far as its name tells."""
        ...

    async def dial(self, host: str, port: int, *, method: str) -> Connection:
        """Raises ToolError: URL_FORBIDDEN when it may not be reached, HTTP_ERROR or HTTP_TIMEOUT when it cannot."""
        ...
