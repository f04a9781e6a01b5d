"""The tools of a runtime as an agent sees them: every call takes the road."""

from collections.abc import Sequence

from toolreeve.core.call import ToolCall
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import ToolSpec
from toolreeve.formats import ParsedCall
from toolreeve.runtime.toolreeve import Toolreeve

MOST_SHOWN = 64
"""Beyond this many, the others are found by search: a model chooses badly among hundreds, and each costs context."""


class ReeveTools:
    def __init__(self, reeve: Toolreeve, session: str) -> None:
        self._reeve = reeve
        self._session = session
        self._found: list[str] = []

    def specs(self) -> Sequence[ToolSpec]:
        """At most `MOST_SHOWN`, and those that the model has called."""
        shown = [bound.spec for bound in self._reeve.tools.list()]
        if len(shown) <= MOST_SHOWN:
            return shown
        first = shown[:MOST_SHOWN]
        return [*first, *(spec for spec in shown[MOST_SHOWN:] if spec.name in self._found)]

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
