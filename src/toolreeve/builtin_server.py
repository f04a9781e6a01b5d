"""MCP server with the documented builtin tools: `python -P -m toolreeve.builtin_server`.

It serves nothing else. Every call takes the road of a runtime for the current directory.
"""

from collections.abc import Mapping
from functools import cached_property

from toolreeve.core.names import BUILTIN_SERVER, canonical
from toolreeve.core.tool import ToolSpec, bind
from toolreeve.core.toolset import read_toolset
from toolreeve.runtime.builtin import TOOLS
from toolreeve.runtime.toolreeve import Toolreeve
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.input_required import new_input_required
from toolreeve.serve.mcp.pipes import Pipes, claim
from toolreeve.serve.mcp.stdio import run, serve_stdio
from toolreeve.serve.mcp.tool_view import ToolView
from toolreeve.upstream.tools.discovery import DOCUMENTED

ALIASES = {"bash": "bash_command"}


class BuiltinServer:
    """The server as the documentation imports it: its name, and its tools by name. `main` serves it."""

    name = BUILTIN_SERVER

    @cached_property
    def _tool_registry(self) -> Mapping[str, ToolSpec]:
        names = {canonical(name): name for name in DOCUMENTED}
        return {names[each.name]: bind(each).spec for each in TOOLS if each.name in names}


server = BuiltinServer()


async def _serve(pipes: Pipes) -> None:
    async with Toolreeve(approve=(), mcp_servers={}, origin="mcp") as reeve:
        handlers = Handlers(reeve, name=BUILTIN_SERVER, input_required=new_input_required(reeve), lists_wait_tool=False)
        view = ToolView(reeve.tools, toolset=read_toolset(DOCUMENTED), aliases=ALIASES)
        async with serve_stdio(handlers, pipes, view) as service:
            await service.finished.wait()
            handlers.close()


def main() -> None:
    run(_serve(claim()))


if __name__ == "__main__":
    main()
