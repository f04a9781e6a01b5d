"""MCP request handlers of all transports: params in, results out.

Each method belongs to its era. A client learns nothing about tools that it may not see. Every action takes the road.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.core.mcp import Era
from toolreeve.rpc.errors import METHOD_NOT_FOUND
from toolreeve.serve.mcp.calls import Calls
from toolreeve.serve.mcp.gateway import Gateway, Upstreams
from toolreeve.serve.mcp.initialize import (
    BEYOND_TOOLS,
    discover_result,
    initialize_result,
    read_client,
    search_instructions,
    server_capabilities,
    server_info,
    server_lines,
)
from toolreeve.serve.mcp.input_required import InputRequired
from toolreeve.serve.mcp.log_levels import LogLevels
from toolreeve.serve.mcp.notifications import Notifications, Notify
from toolreeve.serve.mcp.protocol import Params, WireError, read_log_level, read_text, stamp
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext
from toolreeve.serve.mcp.subscriptions import listen
from toolreeve.serve.mcp.tool_view import as_fragment
from toolreeve.serve.running_server import find_running

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

ROOTS_CHANGED = "notifications/roots/list_changed"
Answer = Callable[[Params, RequestContext], Awaitable[dict[str, Any]]]


class Handlers:
    """Created in the event loop, for a started runtime; closed before the runtime.

    Without `lists_wait_tool`, `wait_for_approval` is not listed, but can still be called.
    """

    def __init__(
        self,
        reeve: "Toolreeve",
        *,
        name: str = "toolreeve",
        input_required: InputRequired | None = None,
        lists_wait_tool: bool = True,
    ) -> None:
        self.info = server_info(name)
        self._reeve = reeve
        self._asks_clients = reeve.configuration.settings.approval.ask_client
        self._until = asyncio.get_running_loop().time() + reeve.configuration.settings.mcp.list_wait
        self._upstreams: Upstreams | None = reeve.fleet if len(reeve.fleet) else None
        self.notifications = Notifications(reeve.tools)
        self._calls = Calls(reeve, self._upstreams, input_required, lists_wait_tool=lists_wait_tool)
        self._gateway = (
            None if self._upstreams is None else Gateway(self._upstreams, reeve.tools, reeve.run, input_required)
        )
        self._log_levels = None if self._upstreams is None else LogLevels(self._upstreams)
        self._unwatch = (
            None if self._upstreams is None else self._upstreams.watch(self.notifications.on_upstream_notification)
        )
        self._methods = {Era.LEGACY: self._common() | self._legacy(), Era.MODERN: self._common() | self._modern()}

    def methods(self, era: Era) -> Sequence[str]:
        return list(self._methods[era])

    async def answer(self, method: str, params: Params, context: RequestContext) -> dict[str, Any]:
        """Raises WireError."""
        self._prepare(context)
        found = self._methods[context.era].get(method)
        if found is None:
            raise WireError(METHOD_NOT_FOUND, "Method not found", method[:200])
        return self._stamped(method, await found(params, context), context)

    async def call(self, params: Params, context: RequestContext) -> dict[str, Any]:
        """Like `answer`, for `tools/call`. Raises WireError."""
        self._prepare(context)
        return self._stamped("tools/call", await self._calls.answer(params, context), context)

    def _prepare(self, context: RequestContext) -> None:
        """A client that opens links instead of showing forms gets the question's page in the console, if that is being
        served. It decides nothing by itself: whoever answers there has to log in."""
        context.client.asked = self._asks_clients
        if context.opens_links:
            running = find_running(Path(self._reeve.configuration.settings.state.dir))
            context.client.inbox = None if running is None else f"{running.url}/inbox"

    def cancel(self, context: RequestContext) -> bool:
        """Cancel the call of a request; False if it has none, or the call has ended."""
        return context.call_id is not None and self._reeve.cancel(context.call_id)

    def watch(self, client: ClientInfo, notify: Notify) -> Callable[[], None]:
        """Send change notifications to a legacy connection; returns a function that stops it."""
        return self.notifications.listen(lambda _, uri: uri is None or uri in client.subscribed, notify)

    async def release(self, context: RequestContext) -> None:
        """A legacy connection has ended: drop its subscriptions and log level."""
        for uri in list(context.client.subscribed):
            with suppress(WireError):  # the server is down, and the subscription with it
                await self._unsubscribe({"uri": uri}, context)
        if self._log_levels is not None:
            await self._log_levels.forget(context.client)

    def on_notification(self, method: str) -> None:
        """A notification from a legacy connection, as far as upstream servers care."""
        if method == ROOTS_CHANGED and self._upstreams is not None:
            self._upstreams.roots_changed()

    def close(self) -> None:
        self.notifications.close()
        if self._unwatch is not None:
            self._unwatch()

    def capabilities(self) -> dict[str, Any]:
        if self._upstreams is None:
            return server_capabilities()
        if self._upstreams.connecting:
            return server_capabilities(BEYOND_TOOLS)
        present = self._upstreams.capabilities()
        return server_capabilities(
            [name for name in BEYOND_TOOLS if any(each.get(name) is not None for each in present)]
        )

    def _common(self) -> dict[str, Answer]:
        methods: dict[str, Answer] = {"tools/list": self._tools, "tools/call": self._calls.answer}
        if self._gateway is not None:
            methods |= {
                "resources/list": self._gateway.resources,
                "resources/templates/list": self._gateway.templates,
                "resources/read": self._gateway.read,
                "prompts/list": self._gateway.prompts,
                "prompts/get": self._gateway.get,
                "completion/complete": self._gateway.complete,
            }
        return methods

    def _legacy(self) -> dict[str, Answer]:
        methods: dict[str, Answer] = {"ping": _ping, "logging/setLevel": self._set_level}
        if self._gateway is not None:
            methods |= {"resources/subscribe": self._subscribe, "resources/unsubscribe": self._unsubscribe}
        return methods

    def _modern(self) -> dict[str, Answer]:
        return {"server/discover": self._discover, "subscriptions/listen": self._listen}

    def initialize(self, params: Params, context: RequestContext) -> dict[str, Any]:
        """Synchronous, so that a request sent right behind it finds the client known. Raises WireError."""
        read_client(params, context.client)
        return initialize_result(
            context.client, self.info, self.capabilities(), instructions=self._instructions(context)
        )

    def _instructions(self, context: RequestContext) -> str:
        if not context.view.search:
            return ""
        servers = [] if self._upstreams is None else self._reeve.configuration.mcp_servers
        return search_instructions(server_lines(servers))

    async def _discover(self, _: Params, context: RequestContext) -> dict[str, Any]:
        return discover_result(self.capabilities(), instructions=self._instructions(context))

    async def _tools(self, params: Params, context: RequestContext) -> dict[str, Any]:
        await self._await_servers()
        page = context.view.page(params.get("cursor"), self._calls.own_tools(context))
        listed = {"tools": as_fragment(page) if context.fragments else list(page.tools)}
        return listed if page.next is None else listed | {"nextCursor": page.next}

    async def _set_level(self, params: Params, context: RequestContext) -> dict[str, Any]:
        level = context.client.log_level = read_log_level(params.get("level"))
        if self._log_levels is not None:
            await self._log_levels.set(context.client, level)
        return {}

    async def _await_servers(self) -> None:
        """Wait a moment for connecting servers, right after the start; slower ones are announced by notification."""
        left = self._until - asyncio.get_running_loop().time()
        if self._upstreams is not None and self._upstreams.connecting and left > 0:
            await self._upstreams.settled(left)

    async def _subscribe(self, params: Params, context: RequestContext) -> dict[str, Any]:
        uri = read_text(params, "uri")
        if self._gateway is not None and uri not in context.client.subscribed:
            await self._gateway.subscribe(uri, context)
            context.client.subscribed.add(uri)
        return {}

    async def _unsubscribe(self, params: Params, context: RequestContext) -> dict[str, Any]:
        uri = read_text(params, "uri")
        if self._gateway is not None and uri in context.client.subscribed:
            context.client.subscribed.discard(uri)
            await self._gateway.unsubscribe(uri, context)
        return {}

    async def _listen(self, params: Params, context: RequestContext) -> dict[str, Any]:
        return await listen(params, context, self.notifications, self._gateway)

    def _stamped(self, method: str, result: dict[str, Any], context: RequestContext) -> dict[str, Any]:
        return result if context.era is Era.LEGACY else stamp(method, result, self.info)


async def _ping(_: Params, __: RequestContext) -> dict[str, Any]:
    return {}
