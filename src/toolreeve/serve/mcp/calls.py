"""What becomes of a `tools/call`? A call on the road, and its result in MCP's shape.

Only tools of the client's view exist; everything else is unknown. A tool that fails is a result that says so; a request
that is none is an error.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolreeve.core.call import ToolCall
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import BoundTool
from toolreeve.serve.mcp import meta_tools
from toolreeve.serve.mcp.caller import Caller
from toolreeve.serve.mcp.relay import PATIENCE, Fleet, refused
from toolreeve.serve.mcp.views import View
from toolreeve.serve.mcp.wire import INVALID_PARAMS, Params, WireError

if TYPE_CHECKING:
    from toolreeve.runtime import Toolreeve

_NOTHING: Mapping[str, Any] = {}


class Calls:
    def __init__(self, reeve: "Toolreeve", fleet: Fleet | None) -> None:
        self._reeve, self._fleet = reeve, fleet

    def offered(self, caller: Caller) -> Sequence[Mapping[str, Any]]:
        """Tools of the door itself."""
        return meta_tools.TOOLS if caller.view.search else ()

    async def answer(self, params: Params, caller: Caller) -> dict[str, Any]:
        name, args = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or (args is not None and not isinstance(args, Mapping)):
            raise WireError(INVALID_PARAMS, "tools/call takes `name`, a string, and `arguments`, an object")
        if caller.view.search:
            if name == meta_tools.SEARCH:
                return meta_tools.found(caller.view, args or _NOTHING)
            if name == meta_tools.CALL:
                name, args = meta_tools.inner_call(args or _NOTHING)
        tool = caller.view.find(name) or await self._awaited(name, caller.view)
        call = ToolCall(
            tool=tool.spec.name,
            args=_NOTHING if args is None else args,
            session=caller.session,
            principal=caller.principal,
            origin="mcp",
            peer=caller,
        )
        caller.call_id = call.id
        return self._told(await self._reeve.run(call))

    async def _awaited(self, name: str, view: View) -> BoundTool:
        """A tool of a server that is still being connected to is worth waiting for."""
        if self._fleet is not None and self._fleet.connecting:
            await self._fleet.settled(PATIENCE)
            if (found := view.find(name)) is not None:
                return found
        raise WireError(INVALID_PARAMS, f"Unknown tool: {name[:200]}")

    def _told(self, result: ToolResult) -> dict[str, Any]:
        error = result.error
        if error is not None and isinstance(error.detail, Mapping) and "jsonrpc" in error.detail:
            raise refused(error)
        told = result.to_mcp()
        if diagnostics := result.meta.diagnostics:
            told["_meta"] = {**(told.get("_meta") or {}), "toolreeve_diagnostics": dict(diagnostics)}
        return told
