"""The tools of a runtime as an agent sees them: every call takes the road."""

from collections.abc import Sequence

from toolreeve.core.call import ToolCall
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import ToolSpec
from toolreeve.formats import ParsedCall
from toolreeve.runtime.builtin import TOOLS
from toolreeve.runtime.toolreeve import Toolreeve

_BUILTIN = frozenset(tool.spec.name for tool in TOOLS)
MOST_SHOWN = 64
"""Beyond this many, the others are found by search: a model chooses badly among hundreds, and each costs context."""


class ReeveTools:
    """With `builtin` off, only tools that the program or an MCP server brings are offered."""

    def __init__(self, reeve: Toolreeve, session: str, *, builtin: bool = True) -> None:
        self._reeve = reeve
        self._session = session
        self._builtin = builtin
        self._found: list[str] = []

    def specs(self) -> Sequence[ToolSpec]:
        """At most `MOST_SHOWN`, and those that the model has called."""
        shown = [bound.spec for bound in self._reeve.tools.list() if self._is_offered(bound.spec)]
        if len(shown) <= MOST_SHOWN:
            return shown
        first = shown[:MOST_SHOWN]
        return [*first, *(spec for spec in shown[MOST_SHOWN:] if spec.name in self._found)]

    def _is_offered(self, spec: ToolSpec) -> bool:
        return self._builtin or spec.name not in _BUILTIN

    async def run(self, call: ParsedCall) -> ToolResult:
        """A tool that is registered but was not shown runs as well, and is shown from then on."""
        if call.name in self._reeve.tools and call.name not in self._found:
            self._found.append(call.name)
        return await self._reeve.run(
            ToolCall(
                tool=call.name,
                args=call.args,
                session=self._session,
                principal=self._reeve.principal,
                origin="agent",
            )
        )

    async def spend(self, dollars: float) -> bool:
        return await self._reeve.spend(dollars)
