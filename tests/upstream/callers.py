"""A scripted caller: records its notifications and requests, and answers as scripted."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolreeve.core.mcp import Era, PeerError
from toolreeve.core.peer import PriorAnswer, PriorApproval

Answer = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


class ScriptedCaller:
    """The `Peer` of a call. `told` and `asked` are the notifications and requests that it got, in order."""

    credential = ""
    can_ask = False
    defers = False

    def __init__(
        self,
        session: str = "one",
        *,
        era: Era = Era.LEGACY,
        capabilities: Mapping[str, Any] | None = None,
        log_level: str | None = None,
        wants_progress: bool = False,
        answer: Answer | None = None,
    ) -> None:
        self.era, self.session, self.log_level, self.wants_progress = era, session, log_level, wants_progress
        self.capabilities: Mapping[str, Any] = capabilities or {}
        self.responses: Mapping[str, Any] | None = None
        self.state: str | None = None
        self.decision: PriorApproval | PriorAnswer | None = None
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self._answer = answer

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method, params))
        if self._answer is None:
            raise PeerError(-1, "nobody answers")
        return await self._answer(method, params)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.told.append((method, params))

    async def ask(self, request: Any) -> Any:
        raise AssertionError("no approval is asked for here")

    async def progress(self, text: str) -> None:
        await self.notify("notifications/progress", {"message": text})
