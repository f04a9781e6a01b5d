"""A runtime served over HTTP on a free port, and requests as a client writes them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from starlette.routing import Route

from toolreeve import DangerLevel, Toolreeve, tool
from toolreeve.config.sections.serve import Serve
from toolreeve.core.mcp import Era
from toolreeve.serve.access import new_access_control
from toolreeve.serve.app import MCP, SHUTDOWN_GRACE, Application, HttpServer, bind
from toolreeve.serve.limits import read_limits
from toolreeve.serve.mcp.door import new_handlers, new_view
from toolreeve.serve.mcp.http import McpHttpDoor, ToolViews
from toolreeve.serve.mcp.protocol import CAPABILITIES_KEY, VERSION_KEY
from toolreeve.serve.tokens import read_tokens

VERSION = str(Era.MODERN)


@dataclass(slots=True)
class HttpTestServer:
    """`door` is what stands behind the gate."""

    url: str
    door: McpHttpDoor
    reeve: Toolreeve
    client: httpx2.AsyncClient

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        number: Any = 1,
    ) -> httpx2.Response:
        """One request of the modern era."""
        said = request(method, params, meta=meta, number=number)
        named = {"mcp-name": str(said["params"]["name"])} if "name" in said["params"] else {}
        shown = {**HEADERS, "mcp-method": method, **named, **(headers or {})}
        return await self.client.post(self.url, json=said, headers=shown)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments})
        return dict(answer.json()["result"])


class Sleeper:
    """A tool that says when it runs and when it is ended."""

    def __init__(self) -> None:
        self.runs, self.ended = asyncio.Event(), asyncio.Event()

    def tool(self, name: str = "sleep") -> Any:
        @tool(name=name, danger=DangerLevel.SAFE)
        async def sleep() -> str:
            """Sleep until somebody ends it."""
            self.runs.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
            return "woken"

        return sleep


HEADERS = {
    "mcp-protocol-version": VERSION,
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


def request(
    method: str, params: Mapping[str, Any] | None = None, *, meta: Mapping[str, Any] | None = None, number: Any = 1
) -> dict[str, Any]:
    envelope = {VERSION_KEY: VERSION, CAPABILITIES_KEY: {}, **(meta or {})}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {**(params or {}), "_meta": envelope}}


@asynccontextmanager
async def serving(
    reeve: Toolreeve,
    *,
    tokens: Sequence[Mapping[str, Any]] = (),
    tools: str | None = None,
    search: bool | None = None,
    origins: Sequence[str] = (),
    grace: float = SHUTDOWN_GRACE,
    limits: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[HttpTestServer]:
    """Tokens are spelled out here as `token`, which nobody should do elsewhere."""
    known = read_tokens([{**each, "token": "${secret:A}"} for each in tokens], _spelled_out(tokens))
    views = ToolViews(new_view(reeve, tools=tools, search=search))
    async with reeve:
        handlers = new_handlers(reeve)
        chosen = read_limits(Serve(**(limits or {})))
        door = McpHttpDoor(handlers, views, chosen.sessions, **options)
        with bind("127.0.0.1", 0) as place:
            host, port = place.getsockname()
            async with door.open(), httpx2.AsyncClient(timeout=20) as client, asyncio.TaskGroup() as tasks:
                application = Application(
                    new_access_control(host, known, origins=origins), [Route(MCP, door)], handlers.close
                )
                server = HttpServer(application, chosen, grace=grace)
                tasks.create_task(server.serve([place]))
                yield HttpTestServer(f"http://{host}:{port}{MCP}", door, reeve, client)
                server.should_exit = True


def _spelled_out(tokens: Sequence[Mapping[str, Any]]) -> Any:
    left = [str(each["token"]) for each in tokens]
    return lambda _: left.pop(0)
