"""Who answers while the tools are still being brought? Somebody who can greet, and asks for patience with the rest.

Every request that comes early is answered by the desk as soon as it is there, or told why it never will be.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolreeve.core.peer import Era
from toolreeve.serve.mcp.connection import Answering
from toolreeve.serve.mcp.initialize import BEYOND_TOOLS, discovered, greet, introduce, own_info, told_capabilities
from toolreeve.serve.mcp.protocol import INTERNAL_ERROR, Params, WireError, stamp
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView


class StartupResponder:
    """Knows from the configuration whether there are servers behind us, and whether tools are to be searched for."""

    def __init__(self, *, servers: bool, search: bool) -> None:
        self._beyond = tuple(BEYOND_TOOLS) if servers else ()
        self._search = search
        self._opened: asyncio.Future[tuple[Answering, ToolView]] = asyncio.get_running_loop().create_future()

    def open(self, desk: Answering, view: "ToolView") -> None:
        self._opened.set_result((desk, view))

    def give_up(self, why: str) -> None:
        if self._opened.done():
            return
        self._opened.set_exception(WireError(INTERNAL_ERROR, f"the server could not start: {why}"))
        self._opened.exception()  # seen, even if nobody asked for anything

    def methods(self, _: Era) -> Sequence[str]:
        return ("tools/list", "tools/call", "logging/setLevel")

    def initialize(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        introduce(params, caller.client)
        return greet(caller.client, own_info(), told_capabilities(self._beyond), search=self._search)

    async def answer(self, method: str, params: Params, caller: RequestContext) -> dict[str, Any]:
        if method == "server/discover" and caller.era is Era.MODERN and not self._opened.done():
            return stamp(method, discovered(told_capabilities(self._beyond), search=self._search), own_info())
        desk = await self._desk_for(caller)
        return await desk.answer(method, params, caller)

    async def call(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        desk = await self._desk_for(caller)
        return await desk.call(params, caller)

    async def _desk_for(self, caller: RequestContext) -> Answering:
        desk, caller.client.view = await asyncio.shield(self._opened)
        return desk

    def cancel(self, _: RequestContext) -> bool:
        return False

    def follow(self, _: ClientInfo, __: Callable[[str, Mapping[str, Any]], None]) -> Callable[[], None]:
        return lambda: None

    def hear(self, _: str) -> None:
        """Nobody is there yet to whom it would be news."""

    async def leave(self, _: RequestContext) -> None:
        """Nothing is kept up for anybody yet."""
