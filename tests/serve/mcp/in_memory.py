"""An in-memory client of a runtime in this process: lines in, lines out."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.serve.mcp.stdio_client import CLIENT, envelope
from toolreeve import Toolreeve
from toolreeve.core.call import new_id
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.door import new_handlers, new_view
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.tool_view import ToolView

PATIENCE = 10.0


class InMemoryClient:
    """The wire of a conversation, whose other end is a test. `congested` plays a client that does not read, and `held`
    is set once something waits for it."""

    def __init__(self) -> None:
        self.congested = False
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.heard: list[dict[str, Any]] = []
        self.connection: McpConnection
        self.handlers: Handlers
        self.held = asyncio.Event()
        self._clear = asyncio.Event()
        self._number = 0

    def send(self, line: bytes) -> None:
        self.lines.put_nowait(line)

    async def clear(self) -> None:
        self.held.set()
        await self._clear.wait()

    def read_again(self) -> None:
        self.congested = False
        self._clear.set()
        self.connection.resume()

    def say(self, message: Any) -> None:
        self.connection.receive(json.dumps(message).encode())

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            message: dict[str, Any] = json.loads(await self.lines.get())
            return message

    async def until(self, method: str) -> dict[str, Any]:
        while (message := await self.next()).get("method") != method:
            self.heard.append(message)
        return message

    async def answer_to(self, number: Any) -> dict[str, Any]:
        while "method" in (message := await self.next()) or message.get("id") != number:
            self.heard.append(message)
        return message

    def begin(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        self._number += 1
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}})
        return self._number

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return await self.answer_to(self.begin(method, params))

    async def modern(
        self, method: str, params: Mapping[str, Any] | None = None, *, meta: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return await self.ask(method, {**(params or {}), "_meta": {**envelope(), **(meta or {})}})

    async def initialize(self, **capabilities: Any) -> dict[str, Any]:
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": CLIENT}
        return await self.ask("initialize", params)

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return dict((await self.ask("tools/call", {"name": tool, "arguments": arguments}))["result"])


@asynccontextmanager
async def connect(reeve: Toolreeve, view: ToolView | None = None, **seen: Any) -> AsyncIterator[InMemoryClient]:
    async with reeve:
        client = InMemoryClient()
        handlers = client.handlers = new_handlers(reeve)
        client.connection = McpConnection(handlers, client, session=new_id(), view=view or new_view(reeve, **seen))
        yield client
        handlers.close()
        await client.connection.finish(0)
