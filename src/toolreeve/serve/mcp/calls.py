"""What becomes of a `tools/call`? A call on the road, and its result in MCP's shape.

Only tools of the client's view exist; everything else is unknown. A tool that fails is a result that says so; a request
that is none is an error.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolreeve.core.call import ToolCall
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.serve.mcp import meta_tools
from toolreeve.serve.mcp.gateway import PATIENCE, Upstreams, refused
from toolreeve.serve.mcp.input_required import WAIT, WAIT_TOOL, InputRequired
from toolreeve.serve.mcp.protocol import INVALID_PARAMS, Params, WireError
from toolreeve.serve.mcp.request_context import RequestContext
from toolreeve.serve.mcp.tool_view import ToolView

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

_NOTHING: Mapping[str, Any] = {}


class Calls:
    """`asking` settles what a call needs to know from the client; without it, nothing waits for an answer."""

    def __init__(
        self, reeve: "Toolreeve", fleet: Upstreams | None, asking: InputRequired | None, *, lists_own: bool = True
    ) -> None:
        self._reeve, self._fleet, self._asking, self._lists_own = reeve, fleet, asking, lists_own

    def offered(self, caller: RequestContext) -> Sequence[Mapping[str, Any]]:
        """Tools of the door itself."""
        waits = (WAIT_TOOL,) if self._waits(caller) else ()
        return (*meta_tools.TOOLS, *waits) if caller.view.search else waits

    def _waits(self, caller: RequestContext) -> bool:
        return self._lists_own and self._asking is not None and self._asking.offers_wait(caller)

    async def answer(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        name, args = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or (args is not None and not isinstance(args, dict)):
            raise WireError(INVALID_PARAMS, "tools/call takes `name`, a string, and `arguments`, an object")
        if caller.view.search:
            if name == meta_tools.SEARCH:
                return meta_tools.found(caller.view, args or _NOTHING)
            if name == meta_tools.CALL:
                name, args = meta_tools.inner_call(args or _NOTHING)
        if name == WAIT and self._asking is not None:
            return await self._wait(self._asking, params, args, caller)
        tool = caller.view.find(name) or await self._awaited(name, caller.view)
        if self._asking is not None and ("requestState" in params or "inputResponses" in params):
            await self._asking.read_retry("tools/call", params, caller)
        call = ToolCall(
            tool=tool.spec.name,
            args=_NOTHING if args is None else args,
            session=caller.session,
            principal=caller.principal,
            origin="mcp",
            peer=caller,
        )
        return await self._run(call, params, caller, tool.spec)

    async def _wait(self, asking: InputRequired, params: Params, args: Any, caller: RequestContext) -> dict[str, Any]:
        """What somebody has allowed by now runs, as it was asked for, if the client may still see the tool."""
        await asking.read_retry("tools/call", params, caller)
        waited = await asking.wait(args or _NOTHING, caller)
        if isinstance(waited, ToolResult):
            return _told(waited)
        if caller.view.find(waited.tool) is None:
            raise WireError(INVALID_PARAMS, f"Unknown tool: {waited.tool}")
        return await self._run(waited, params, caller)

    async def _run(
        self, call: ToolCall, params: Params, caller: RequestContext, spec: ToolSpec | None = None
    ) -> dict[str, Any]:
        """`spec` is of the tool that the client called by its own name."""
        caller.call_id = call.id
        result = await self._reeve.run(call)
        if self._asking is not None and (caller.question is not None or result.meta.raw is not None):
            required = self._asking.required("tools/call", params, caller, result)
            if required is not None:
                return required
        return _told(result, spec)

    async def _awaited(self, name: str, view: ToolView) -> BoundTool:
        """A tool of a server that is still being connected to is worth waiting for."""
        if self._fleet is not None and self._fleet.connecting:
            await self._fleet.expected(name, PATIENCE)
            if (found := view.find(name)) is not None:
                return found
        raise WireError(INVALID_PARAMS, f"Unknown tool: {name[:200]}")


def _told(result: ToolResult, spec: ToolSpec | None = None) -> dict[str, Any]:
    error = result.error
    if error is not None and isinstance(error.detail, Mapping) and "jsonrpc" in error.detail:
        raise refused(error)
    told = result.to_mcp()
    if diagnostics := result.meta.diagnostics:
        told["_meta"] = {**(told.get("_meta") or {}), "toolreeve_diagnostics": dict(diagnostics)}
    if error is not None and result.meta.raw is None and spec is not None and "outputSchema" in (spec.declared or ()):
        # A server elsewhere said what its tool answers, and clients hold our own refusals against that, too.
        told["_meta"] = {**(told.get("_meta") or {}), "toolreeve_error": told.pop("structuredContent")}
    return told
