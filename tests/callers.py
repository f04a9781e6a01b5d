"""A caller that speaks no MCP: only what `Peer` asks of a door."""

from collections.abc import Callable
from typing import Any

from toolreeve.core.peer import DEFERRED, PriorAnswer, PriorApproval


class PlainCaller:
    """`answer` gives the answer to an approval request; a deferring caller brings it as `decision` later."""

    session = "s"
    credential = ""
    wants_progress = True

    def __init__(self, answer: Callable[[Any], Any] | None = None, *, defers: bool = False) -> None:
        self.can_ask = defers or answer is not None
        self.defers = defers
        self.decision: PriorApproval | PriorAnswer | None = None
        self.requests: list[Any] = []
        self.reports: list[str] = []
        self._answer = answer

    async def ask(self, request: Any) -> Any:
        self.requests.append(request)
        if self.defers or self._answer is None:
            return DEFERRED
        return self._answer(request)

    async def progress(self, text: str) -> None:
        self.reports.append(text)
