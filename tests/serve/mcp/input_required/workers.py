"""Workers that serve the same clients, and a client that calls through one of them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.world import World
from toolreeve import Toolreeve
from toolreeve.core.call import LOCAL, Principal
from toolreeve.core.mcp import Era
from toolreeve.core.toolset import read_toolset
from toolreeve.rpc.errors import INVALID_PARAMS
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.input_required import REFUSED, InputRequired
from toolreeve.serve.mcp.protocol import WireError
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext
from toolreeve.serve.mcp.request_state import Seal
from toolreeve.serve.mcp.tool_view import ToolView

FORMS: Mapping[str, Any] = {"elicitation": {}}
YES: Mapping[str, Any] = {"approval": {"action": "accept", "content": {"decision": "allow once"}}}
WRITE: Mapping[str, Any] = {"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}
KEY = b"a key that all workers share, 32"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Nowhere:
    async def request(self, method: str, _: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(f"{method} cannot be asked here")

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        return None


class Worker:
    """One process of several that serve the same clients."""

    def __init__(self, reeve: Toolreeve, clock: Clock, keys: tuple[bytes, ...] = (KEY,)) -> None:
        self.reeve = reeve
        input_required = InputRequired(lambda: Seal(keys, now=clock), reeve.approvals.store, now=clock)
        self.handlers = Handlers(reeve, input_required=input_required)

    async def call(
        self,
        request: Mapping[str, Any] = WRITE,
        *,
        principal: Principal = LOCAL,
        credential: str = "token-1",
        session: str = "s",
        capabilities: Mapping[str, Any] = FORMS,
        tools: str = "*",
        **brought: Any,
    ) -> dict[str, Any]:
        client = ClientInfo(
            view=ToolView(self.reeve.tools, toolset=read_toolset(tools), role=principal.role),
            era=Era.MODERN,
            session=session,
            principal=principal,
            credential=credential,
            capabilities=capabilities,
        )
        return await self.handlers.call({**request, **brought}, RequestContext(client, Nowhere()))

    async def refused(self, request: Mapping[str, Any] = WRITE, **brought: Any) -> None:
        with pytest.raises(WireError) as raised:
            await self.call(request, **brought)
        assert (raised.value.code, raised.value.message, raised.value.data) == (INVALID_PARAMS, REFUSED, None)


@asynccontextmanager
async def worker(world: World, clock: Clock | None = None, **options: Any) -> AsyncIterator[Worker]:
    async with world.reeve(**options) as reeve:
        made = Worker(reeve, clock or Clock())
        try:
            yield made
        finally:
            made.handlers.close()


def written(world: World) -> bool:
    return (world.workspace / "a.txt").exists()
