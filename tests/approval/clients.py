"""Scripted clients that call through a door and may answer questions."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from toolreeve import Toolreeve
from toolreeve.core.call import LOCAL, Principal, ToolCall
from toolreeve.core.mcp import Era, PeerError
from toolreeve.core.result import ToolResult
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext

FORMS: Mapping[str, Any] = {"elicitation": {}}
ACCEPT = {"action": "accept", "content": {"decision": "allow once"}}


class ScriptedOutbound:
    """`answers` says what the person at the client answers to a form; without it, they never do."""

    def __init__(self, answers: Callable[[Mapping[str, Any]], Any] | None) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.shown = asyncio.Event()
        self.withdrawn = False
        self._answers = answers

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append((method, params))
        self.shown.set()
        if self._answers is None:
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                self.withdrawn = True
                raise
        answer: dict[str, Any] = self._answers(params) if self._answers is not None else {}
        return answer

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        raise AssertionError(f"nothing is told here, but {method} was")


class Client(RequestContext):
    """The request context of a client with a scripted person."""

    def __init__(
        self,
        era: Era = Era.LEGACY,
        capabilities: Mapping[str, Any] = FORMS,
        *,
        answers: Callable[[Mapping[str, Any]], Any] | None = None,
        session: str = "s",
    ) -> None:
        self.form = ScriptedOutbound(answers)
        client = ClientInfo(view=None, era=era, session=session, capabilities=capabilities)  # type: ignore[arg-type]
        super().__init__(client, self.form)

    @property
    def message(self) -> str:
        """The form that was shown last."""
        return str(self.form.asked[-1][1]["message"])

    async def writes(
        self, reeve: Toolreeve, path: str = "a.txt", content: str = "x", *, principal: Principal = LOCAL, **more: Any
    ) -> ToolResult:
        args = {"path": path, "content": content}
        call = ToolCall(
            tool="write_file", args=args, session=self.session, principal=principal, origin="mcp", peer=self, **more
        )
        return await reeve.run(call)


def gone(_: Mapping[str, Any]) -> Any:
    raise PeerError(-32000, "connection closed")
