"""Events of approvals: requested, then resolved or withdrawn."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.approval.request import Approval, Request
from toolreeve.approval.sentence import sentence
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.events import Event

Emit = Callable[[Event], None]
_OUTCOMES = {
    ErrorCode.APPROVAL_DENIED: "denied",
    ErrorCode.APPROVAL_TIMEOUT: "timeout",
    ErrorCode.PERMISSION: "unanswered",
}


class ApprovalEvents:
    """`question` is the id of the stored question, `asked` when it was asked. A question that stays pending has not
    ended, and has no second event."""

    def __init__(self, emit: Emit, *, now: Callable[[], float], timeout: float, home: str) -> None:
        self._emit = emit
        self._now = now
        self._timeout = timeout
        self._home = home

    def requested(self, request: Request, channels: Sequence[str]) -> None:
        data = {
            "tool_id": request.tool,
            "request": request.id,
            "sentence": sentence(request, home=self._home),
            "danger": request.danger.value,
            "reason": request.verdict.reason,
            "rule": request.verdict.rule,
            "channels": list(channels),
            "timeout": self._timeout,
        }
        self._send("approval_requested", request, data)

    def granted(self, request: Request, approval: Approval, *, question: str, asked: float) -> None:
        outcome = {
            "outcome": "granted",
            "by": approval.by,
            "scope": str(approval.scope),
            "note": approval.note,
            "edited": approval.args is not None,
            **({} if approval.only is None else {"only": list(approval.only)}),
            "remembered": approval.remembered,
            "problem": approval.problem,
        }
        self._end("approval_resolved", request, outcome, question, asked)

    def refused(self, request: Request, refusal: ToolError, *, question: str, asked: float) -> None:
        """An error that is not about the answer withdraws the question."""
        if refusal.code is ErrorCode.APPROVAL_PENDING:
            return
        if refusal.code not in _OUTCOMES:
            self.withdrawn(request, question=question, asked=asked)
            return
        outcome = {"outcome": _OUTCOMES[refusal.code], "note": refusal.message}
        self._end("approval_resolved", request, outcome, question, asked)

    def withdrawn(self, request: Request, *, question: str, asked: float) -> None:
        self._end("approval_withdrawn", request, {"outcome": "withdrawn"}, question, asked)

    def _end(self, kind: str, request: Request, outcome: Mapping[str, Any], question: str, asked: float) -> None:
        waited = self._now() - asked
        self._send(kind, request, {"tool_id": request.tool, "request": question, **outcome, "waited": waited})

    def _send(self, kind: str, request: Request, data: Mapping[str, Any]) -> None:
        self._emit(Event(event=kind, task_id=request.call_id, component="approval", data=data, at=self._now()))
