"""Answers `initialize` before the runtime is up; everything else waits for it.

Every early request is answered by the handlers as soon as they exist, or with the reason why the start failed.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolreeve.core.mcp import Era
from toolreeve.rpc.errors import INTERNAL_ERROR
from toolreeve.serve.mcp.connection import RequestHandlers
from toolreeve.serve.mcp.initialize import (
    BEYOND_TOOLS,
    discover_result,
    initialize_result,
    read_client,
    server_capabilities,
    server_info,
)
from toolreeve.serve.mcp.protocol import Params, WireError, stamp
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView


class StartupResponder:
    """`servers` says whether upstream servers are configured; `instructions` are for the model."""

    def __init__(self, *, servers: bool, instructions: str = "") -> None:
        self._beyond = tuple(BEYOND_TOOLS) if servers else ()
        self._instructions = instructions
        self.initialized: asyncio.Future[ClientInfo | None] = asyncio.get_running_loop().create_future()
        """The client of the legacy era, once it has said that it is initialized; None for one of the modern era."""
        self._client: ClientInfo | None = None
        self._ready: asyncio.Future[tuple[RequestHandlers, ToolView]] = asyncio.get_running_loop().create_future()

    def complete(self, handlers: RequestHandlers, view: "ToolView") -> None:
        self._ready.set_result((handlers, view))

    def give_up(self, why: str) -> None:
        if self._ready.done():
            return
        self._ready.set_exception(WireError(INTERNAL_ERROR, f"the server could not start: {why}"))
        self._ready.exception()  # marked as retrieved, in case no request waits

    def methods(self, _: Era) -> Sequence[str]:
        return ("tools/list", "tools/call", "logging/setLevel")

    def initialize(self, params: Params, context: RequestContext) -> dict[str, Any]:
        read_client(params, context.client)
        self._client = context.client
        capabilities = server_capabilities(self._beyond)
        return initialize_result(context.client, server_info(), capabilities, instructions=self._instructions)

    async def answer(self, method: str, params: Params, context: RequestContext) -> dict[str, Any]:
        if method == "server/discover" and context.era is Era.MODERN and not self._ready.done():
            self._set_initialized(None)
            found = discover_result(server_capabilities(self._beyond), instructions=self._instructions)
            return stamp(method, found, server_info())
        handlers = await self._await_handlers(context)
        return await handlers.answer(method, params, context)

    async def call(self, params: Params, context: RequestContext) -> dict[str, Any]:
        handlers = await self._await_handlers(context)
        return await handlers.call(params, context)

    async def _await_handlers(self, context: RequestContext) -> RequestHandlers:
        self._set_initialized(self._client)
        handlers, context.client.view = await asyncio.shield(self._ready)
        return handlers

    def cancel(self, _: RequestContext) -> bool:
        return False

    def watch(self, _: ClientInfo, __: Callable[[str, Mapping[str, Any]], None]) -> Callable[[], None]:
        return lambda: None

    def on_notification(self, method: str) -> None:
        """There are no upstream servers to notify yet."""
        if method == "notifications/initialized":
            self._set_initialized(self._client)

    def _set_initialized(self, client: ClientInfo | None) -> None:
        if not self.initialized.done():
            self.initialized.set_result(client)

    async def release(self, _: RequestContext) -> None:
        """There are no subscriptions yet."""
