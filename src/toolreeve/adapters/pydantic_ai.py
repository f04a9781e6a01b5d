"""Toolset for Pydantic AI: `Agent(model, toolsets=[ReeveToolset(reeve)])`."""

from collections.abc import Sequence
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import AgentDepsT, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from toolreeve.adapters.calls import run_text
from toolreeve.runtime.toolreeve import Toolreeve

_ANYTHING = SchemaValidator(core_schema.any_schema())
"""The road validates the arguments, and says what is wrong in words for a model."""


class ReeveToolset(AbstractToolset[AgentDepsT]):
    """The tools of a started runtime; `only` chooses them, as in `Toolreeve.tools_for`. The model reads a failure as
    text, with its suggestions."""

    def __init__(self, reeve: Toolreeve, only: Sequence[str] | None = None) -> None:
        self._reeve = reeve
        self._only = only

    @property
    def id(self) -> str | None:
        return "toolreeve"

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        del ctx
        declared = [tool["function"] for tool in self._reeve.tools_for("openai", self._only)]
        return {function["name"]: self._tool(function) for function in declared}

    def _tool(self, function: dict[str, Any]) -> ToolsetTool[AgentDepsT]:
        definition = ToolDefinition(
            name=function["name"],
            description=function["description"],
            parameters_json_schema=function["parameters"],
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=0, args_validator=_ANYTHING)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        del ctx, tool
        return await run_text(self._reeve, name, tool_args)
