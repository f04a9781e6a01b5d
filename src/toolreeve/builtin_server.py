"""`python -P -m toolreeve.builtin_server`: the documented builtin tools, and nothing else, as an MCP server on stdio.

They are called by their documented names, and every call takes the road of a runtime for the current directory.
"""

from toolreeve.core.names import BUILTIN_SERVER
from toolreeve.remote.offers.discovery import DOCUMENTED
from toolreeve.runtime import Toolreeve
from toolreeve.serve.mcp.asking import new_asking
from toolreeve.serve.mcp.desk import Desk
from toolreeve.serve.mcp.patterns import read_patterns
from toolreeve.serve.mcp.pipes import Pipes, claim
from toolreeve.serve.mcp.stdio import run, serving
from toolreeve.serve.mcp.views import View

SPELLED = {"bash": "bash_command"}


async def _serve(pipes: Pipes) -> None:
    async with Toolreeve(approve=(), mcp_servers={}, origin="mcp") as reeve:
        desk = Desk(reeve, name=BUILTIN_SERVER, asking=new_asking(reeve), lists_own=False)
        view = View(reeve.tools, patterns=read_patterns(DOCUMENTED), spelled=SPELLED)
        async with serving(desk, pipes, view) as service:
            await service.over.wait()
            desk.close()


def main() -> None:
    run(_serve(claim()))


if __name__ == "__main__":
    main()
