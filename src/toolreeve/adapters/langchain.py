"""Tools for LangChain: `create_agent(model, tools=langchain_tools(reeve))`."""

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import StructuredTool

from toolreeve.adapters.calls import run_text
from toolreeve.runtime.toolreeve import Toolreeve


def langchain_tools(reeve: Toolreeve, only: Sequence[str] | None = None) -> list[StructuredTool]:
    """The tools of a started runtime, for use in its event loop; `only` chooses them, as in `Toolreeve.tools_for`."""
    return [_tool(reeve, declared["function"]) for declared in reeve.tools_for("openai", only)]


def _tool(reeve: Toolreeve, function: dict[str, Any]) -> StructuredTool:
    name = function["name"]

    async def run(**args: Any) -> str:
        return await run_text(reeve, name, args)

    return StructuredTool(
        name=name, description=function["description"], args_schema=function["parameters"], coroutine=run
    )
