"""Server for FastMCP: `server.mount(fastmcp_server(reeve))`."""

from collections.abc import Sequence
from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from mcp_types import ContentBlock, TextContent, ToolAnnotations
from pydantic import ConfigDict, PrivateAttr, TypeAdapter

from toolreeve.runtime.toolreeve import Toolreeve

_CONTENT: TypeAdapter[list[ContentBlock]] = TypeAdapter(list[ContentBlock])


def fastmcp_server(reeve: Toolreeve, only: Sequence[str] | None = None) -> "FastMCP[Any]":
    """The tools of a started runtime; `only` chooses them, as in `Toolreeve.tools_for`."""
    server: FastMCP[Any] = FastMCP("toolreeve")
    for declared in reeve.tools_for("mcp", only):
        server.add_tool(_new_tool(reeve, declared))
    return server


class ReeveTool(Tool):
    """A tool whose calls take the road, which also validates the arguments."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    _reeve: Toolreeve = PrivateAttr()

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        result = (await self._reeve.call(self.name, arguments)).to_mcp()
        content = _CONTENT.validate_python(result["content"]) or [TextContent(type="text", text="")]
        return ToolResult(content, result.get("structuredContent"), is_error=result["isError"])


def _new_tool(reeve: Toolreeve, declared: dict[str, Any]) -> ReeveTool:
    tool = ReeveTool(
        name=declared["name"],
        title=declared.get("title"),
        description=declared["description"],
        parameters=declared["inputSchema"],
        annotations=ToolAnnotations.model_validate(declared.get("annotations", {})),
    )
    tool._reeve = reeve
    return tool
