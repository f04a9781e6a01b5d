"""What does an MCP client ask for, and who answers? One desk for every transport: requests in, results out, as dicts.

Each method belongs to its era; what a client may not see, it is not told of. What a request wants done takes the road.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolreeve.core.peer import Era
from toolreeve.serve.mcp.calls import Calls
from toolreeve.serve.mcp.gateway import PATIENCE, Gateway, Upstreams
from toolreeve.serve.mcp.initialize import BEYOND_TOOLS, discovered, greet, introduce, own_info, told_capabilities
from toolreeve.serve.mcp.input_required import InputRequired
from toolreeve.serve.mcp.log_levels import LogLevels
from toolreeve.serve.mcp.notifications import Notifications, Tell
from toolreeve.serve.mcp.protocol import METHOD_NOT_FOUND, Params, WireError, read_log_level, read_text, stamp
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext
from toolreeve.serve.mcp.subscriptions import listen
from toolreeve.serve.mcp.tool_view import as_fragment

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

ROOTS_CHANGED = "notifications/roots/list_changed"
Answer = Callable[[Params, RequestContext], Awaitable[dict[str, Any]]]


class Handlers:
    """Made inside the loop it works in, for a runtime that is started; closed before it.

    Without `lists_own`, a client that cannot be asked is not shown the tool with which to wait for an approval; it can
    call it all the same.
    """

    def __init__(
        self,
        reeve: "Toolreeve",
        *,
        name: str = "toolreeve",
        asking: InputRequired | None = None,
        lists_own: bool = True,
    ) -> None:
        self.info = own_info(name)
        self._reeve = reeve
        self._until = asyncio.get_running_loop().time() + PATIENCE
        self._fleet: Upstreams | None = reeve.fleet if len(reeve.fleet) else None
        self.news = Notifications(reeve.tools)
        self._calls = Calls(reeve, self._fleet, asking, lists_own=lists_own)
        self._relay = None if self._fleet is None else Gateway(self._fleet, reeve.tools, reeve.run, asking)
        self._levels = None if self._fleet is None else LogLevels(self._fleet)
        self._unwatch = None if self._fleet is None else self._fleet.watch(self.news.hear)
        self._methods = {Era.LEGACY: self._common() | self._legacy(), Era.MODERN: self._common() | self._modern()}

    def methods(self, era: Era) -> Sequence[str]:
        return list(self._methods[era])

    async def answer(self, method: str, params: Params, caller: RequestContext) -> dict[str, Any]:
        """Raises WireError."""
        found = self._methods[caller.era].get(method)
        if found is None:
            raise WireError(METHOD_NOT_FOUND, "Method not found", method[:200])
        return self._stamped(method, await found(params, caller), caller)

    async def call(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        """The same for `tools/call`, which most requests are. Raises WireError."""
        return self._stamped("tools/call", await self._calls.answer(params, caller), caller)

    def cancel(self, caller: RequestContext) -> bool:
        """End the call that a request made; False if it made none, or that has ended."""
        return caller.call_id is not None and self._reeve.cancel(caller.call_id)

    def follow(self, client: ClientInfo, tell: Tell) -> Callable[[], None]:
        """Tell a connection of the legacy era what changes; what is returned ends that."""
        return self.news.listen(lambda _, uri: uri is None or uri in client.subscribed, tell)

    async def leave(self, caller: RequestContext) -> None:
        """A connection of the legacy era has ended: nothing is kept up for it any more."""
        for uri in list(caller.client.subscribed):
            with suppress(WireError):  # the server is away, and with it the subscription
                await self._unsubscribe({"uri": uri}, caller)
        if self._levels is not None:
            await self._levels.leave(caller.client)

    def hear(self, method: str) -> None:
        """What a connection of the legacy era says without wanting an answer, as far as servers behind us care."""
        if method == ROOTS_CHANGED and self._fleet is not None:
            self._fleet.roots_changed()

    def close(self) -> None:
        self.news.close()
        if self._unwatch is not None:
            self._unwatch()

    def capabilities(self) -> dict[str, Any]:
        if self._fleet is None:
            return told_capabilities()
        if self._fleet.connecting:
            return told_capabilities(BEYOND_TOOLS)
        present = self._fleet.capabilities()
        return told_capabilities([name for name in BEYOND_TOOLS if any(each.get(name) is not None for each in present)])

    def _common(self) -> dict[str, Answer]:
        methods: dict[str, Answer] = {"tools/list": self._tools, "tools/call": self._calls.answer}
        if self._relay is not None:
            methods |= {
                "resources/list": self._relay.resources,
                "resources/templates/list": self._relay.templates,
                "resources/read": self._relay.read,
                "prompts/list": self._relay.prompts,
                "prompts/get": self._relay.get,
                "completion/complete": self._relay.complete,
            }
        return methods

    def _legacy(self) -> dict[str, Answer]:
        methods: dict[str, Answer] = {"ping": _pong, "logging/setLevel": self._set_level}
        if self._relay is not None:
            methods |= {"resources/subscribe": self._subscribe, "resources/unsubscribe": self._unsubscribe}
        return methods

    def _modern(self) -> dict[str, Answer]:
        return {"server/discover": self._discover, "subscriptions/listen": self._listen}

    def initialize(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        """Needs no waiting, so that whatever is sent right behind it finds the client known. Raises WireError."""
        introduce(params, caller.client)
        return greet(caller.client, self.info, self.capabilities(), search=caller.view.search)

    async def _discover(self, _: Params, caller: RequestContext) -> dict[str, Any]:
        return discovered(self.capabilities(), search=caller.view.search)

    async def _tools(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        await self._await_servers()
        page = caller.view.page(params.get("cursor"), self._calls.offered(caller))
        listed = {"tools": as_fragment(page) if caller.fragments else list(page.tools)}
        return listed if page.next is None else listed | {"nextCursor": page.next}

    async def _set_level(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        level = caller.client.log_level = read_log_level(params.get("level"))
        if self._levels is not None:
            await self._levels.wish(caller.client, level)
        return {}

    async def _await_servers(self) -> None:
        """For a while after the door opened; who comes up later than that is news."""
        left = self._until - asyncio.get_running_loop().time()
        if self._fleet is not None and self._fleet.connecting and left > 0:
            await self._fleet.settled(left)

    async def _subscribe(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        uri = read_text(params, "uri")
        if self._relay is not None and uri not in caller.client.subscribed:
            await self._relay.subscribe(uri, caller)
            caller.client.subscribed.add(uri)
        return {}

    async def _unsubscribe(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        uri = read_text(params, "uri")
        if self._relay is not None and uri in caller.client.subscribed:
            caller.client.subscribed.discard(uri)
            await self._relay.unsubscribe(uri, caller)
        return {}

    async def _listen(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        return await listen(params, caller, self.news, self._relay)

    def _stamped(self, method: str, result: dict[str, Any], caller: RequestContext) -> dict[str, Any]:
        return result if caller.era is Era.LEGACY else stamp(method, result, self.info)


async def _pong(_: Params, __: RequestContext) -> dict[str, Any]:
    return {}
