"""`tools/call`: runs the tool and converts its result to MCP.

Only tools in the client's view exist; any other name is unknown. A failing tool is a result with `isError`; an invalid
request is a JSON-RPC error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode
from toolreeve.core.names import client_arguments
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.rpc.errors import INVALID_PARAMS
from toolreeve.serve.mcp import meta_tools
from toolreeve.serve.mcp.client_session import is_issued
from toolreeve.serve.mcp.gateway import CONNECT_TIMEOUT, Upstreams, rpc_error
from toolreeve.serve.mcp.input_required import WAIT, WAIT_TOOL, InputRequired
from toolreeve.serve.mcp.protocol import Params, WireError
from toolreeve.serve.mcp.request_context import RequestContext
from toolreeve.serve.mcp.tool_view import ToolView

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

_NOTHING: Mapping[str, Any] = {}
STRUCTURED_FIRST = frozenset({"claude-code", "codex-mcp-client"})
"""Clients that give their model the structured content of a result instead of its text."""


class Calls:
    """`input_required` handles input that a call needs from the client; without it, no call waits for input."""

    def __init__(
        self,
        reeve: "Toolreeve",
        upstreams: Upstreams | None,
        input_required: InputRequired | None,
        *,
        lists_wait_tool: bool = True,
    ) -> None:
        self._reeve = reeve
        self._upstreams = upstreams
        self._input_required = input_required
        self._lists_wait_tool = lists_wait_tool

    def own_tools(self, context: RequestContext) -> Sequence[Mapping[str, Any]]:
        """The door's own tools."""
        waits = (WAIT_TOOL,) if self._waits(context) else ()
        return (*meta_tools.TOOLS, *waits) if context.view.search else waits

    def _waits(self, context: RequestContext) -> bool:
        return self._lists_wait_tool and self._input_required is not None and self._input_required.offers_wait(context)

    async def answer(self, params: Params, context: RequestContext) -> dict[str, Any]:
        name = params.get("name")
        args = params.get("arguments")
        if not isinstance(name, str) or (args is not None and not isinstance(args, dict)):
            raise WireError(INVALID_PARAMS, "tools/call takes `name`, a string, and `arguments`, an object")
        if context.view.search:
            if name == meta_tools.SEARCH:
                return meta_tools.found(context.view, args or _NOTHING)
            if name == meta_tools.CALL:
                name, args = meta_tools.inner_call(args or _NOTHING)
                if await self._find(name, context.view) is None:
                    return meta_tools.unknown(name, context.view)
        if name == WAIT and self._input_required is not None:
            return await self._wait(self._input_required, params, args, context)
        tool = await self._find(name, context.view)
        if tool is None:
            raise WireError(INVALID_PARAMS, f"Unknown tool: {name[:200]}")
        if self._input_required is not None and ("requestState" in params or "inputResponses" in params):
            await self._input_required.read_retry("tools/call", params, context)
        call = ToolCall(
            tool=tool.spec.name,
            args=_NOTHING if args is None else client_arguments(name, args),
            session=context.session,
            session_issued=is_issued(context.session),
            principal=context.principal,
            origin="mcp",
            client=context.client_name,
            peer=context,
            traceparent=_traceparent(params),
        )
        return await self._run(call, params, context, tool.spec)

    async def _wait(
        self, input_required: InputRequired, params: Params, args: Any, context: RequestContext
    ) -> dict[str, Any]:
        """Run the approved call as it was asked about, if the client may still see the tool."""
        await input_required.read_retry("tools/call", params, context)
        waited = await input_required.wait(args or _NOTHING, context)
        if isinstance(waited, ToolResult):
            return _mcp_result(waited, context)
        if context.view.find(waited.tool) is None:
            raise WireError(INVALID_PARAMS, f"Unknown tool: {waited.tool}")
        return await self._run(waited, params, context)

    async def _run(
        self, call: ToolCall, params: Params, context: RequestContext, spec: ToolSpec | None = None
    ) -> dict[str, Any]:
        """`spec` is the tool's, if the client called it directly."""
        context.call_id = call.id
        result = await self._reeve.run(call)
        if self._input_required is not None and (context.question is not None or result.meta.raw is not None):
            required = self._input_required.required("tools/call", params, context, result)
            if required is not None:
                return required
        if result.error is not None and result.error.code is ErrorCode.APPROVAL_PENDING and self._waits(context):
            number = (result.error.data or {}).get("approval_id")
            advice = f"or call {WAIT} with approval_id {number!r}, which returns the result once they have decided"
            result.outcome = replace(result.error, suggestions=(*result.error.suggestions, advice))
        return _mcp_result(result, context, spec)

    async def _find(self, name: str, view: ToolView) -> BoundTool | None:
        """The tool; waits for one of a server that is still connecting."""
        found = view.find(name)
        if found is None and self._upstreams is not None and self._upstreams.connecting:
            await self._upstreams.expected(name, CONNECT_TIMEOUT)
            found = view.find(name)
        return found


def _traceparent(params: Params) -> str:
    """The caller's trace context, as MCP carries it."""
    meta = params.get("_meta")
    given = meta.get("traceparent") if isinstance(meta, Mapping) else None
    return given[:100] if isinstance(given, str) else ""


def _mcp_result(result: ToolResult, context: RequestContext, spec: ToolSpec | None = None) -> dict[str, Any]:
    error = result.error
    if error is not None and isinstance(error.detail, Mapping) and "jsonrpc" in error.detail:
        raise rpc_error(error)
    converted = result.to_mcp(structured_first=context.client.info.get("name") in STRUCTURED_FIRST)
    if diagnostics := result.meta.diagnostics:
        converted["_meta"] = {**(converted.get("_meta") or {}), "toolreeve_diagnostics": dict(diagnostics)}
    if error is not None and result.meta.raw is None and spec is not None and "outputSchema" in (spec.declared or ()):
        # The upstream server declared an output schema, and clients would validate our refusals against it.
        converted["_meta"] = {**(converted.get("_meta") or {}), "toolreeve_error": converted.pop("structuredContent")}
    return converted
