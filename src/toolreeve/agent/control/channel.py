"""Approval channel over a control protocol."""

from collections.abc import Mapping
from typing import Any

from toolreeve.agent.control.messages import ControlRequest
from toolreeve.agent.control.protocol import ControlProtocol
from toolreeve.approval.prompt import describe
from toolreeve.approval.request import Answer, Request, Scope

OPTIONS = ("Approve", "Deny", "Approve All", "Deny All")


class ControlChannel:
    """Only `{"approved": true}` grants. "all" means this session."""

    name = "control"

    def __init__(self, protocol: ControlProtocol) -> None:
        self._protocol = protocol

    def available(self) -> bool:
        return self._protocol.is_started

    async def ask(self, request: Request) -> Answer:
        data = {
            "tool_name": request.tool,
            "tool_input": dict(request.args),
            "danger": request.danger.value,
            "prompt": describe(request),
            "action": f"run {request.tool}",
            "details": dict(request.args),
            "options": list(OPTIONS),
        }
        sent = ControlRequest.create("approval", data)
        response = await self._protocol.send_request(sent, timeout=None)
        if response.error is not None:
            raise RuntimeError(response.error)
        answer: Mapping[str, Any] = response.data if isinstance(response.data, Mapping) else {}
        if answer.get("approved") is True:
            scope = Scope.SESSION if answer.get("action") == "all" else Scope.ONCE
            return request.allow(scope=scope, by=str(answer.get("by") or ""))
        if answer.get("approved") is False:
            return request.deny(note=str(answer.get("note") or ""), by=str(answer.get("by") or ""))
        raise RuntimeError("the response has no boolean 'approved'")
