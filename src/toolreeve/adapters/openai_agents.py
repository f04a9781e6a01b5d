"""Tools for the OpenAI Agents SDK: `Agent(name=…, tools=function_tools(reeve))`."""

from collections.abc import Sequence
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from toolreeve.adapters.calls import run_text
from toolreeve.core import json
from toolreeve.runtime.toolreeve import Toolreeve


def function_tools(reeve: Toolreeve, only: Sequence[str] | None = None) -> list[FunctionTool]:
    """The tools of a started runtime; `only` chooses them, as in `Toolreeve.tools_for`."""
    return [_tool(reeve, declared["function"]) for declared in reeve.tools_for("openai", only)]


def _tool(reeve: Toolreeve, function: dict[str, Any]) -> FunctionTool:
    name = function["name"]

    async def invoke(_: ToolContext[Any], arguments: str) -> str:
        try:
            args = json.loads(arguments or "{}")
        except ValueError:
            args = arguments  # no tool's schema accepts it: the road refuses and records the call
        return await run_text(reeve, name, args)

    return FunctionTool(
        name=name,
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )
