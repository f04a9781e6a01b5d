"""Approval channel to the editor: ACP's permission requests.

Only an option that was offered is an answer. A cancelled request is none: the question stays with the other channels.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from toolreeve.acp.connection import AcpConnection, AcpError
from toolreeve.acp.server.updates import kind_of
from toolreeve.approval.prompt import describe
from toolreeve.approval.request import Answer, Request, Scope

METHOD = "session/request_permission"
_SCOPES = {"allow_once": Scope.ONCE, "allow_session": Scope.SESSION, "allow_always": Scope.ALWAYS}


class AskedSession(Protocol):
    @property
    def id(self) -> str: ...

    def find_call(self, tool: str, args: Any, default: str) -> str: ...


class EditorChannel:
    name = "editor"

    def __init__(self, connection: AcpConnection, session: AskedSession) -> None:
        self._connection = connection
        self._session = session

    def available(self) -> bool:
        return True

    async def ask(self, request: Request) -> Answer:
        offered = _options(request)
        call = {
            "toolCallId": self._session.find_call(request.tool, request.args, request.call_id),
            "title": request.heading,
            "kind": kind_of(request.tool),
            "status": "pending",
            "rawInput": dict(request.args),
            "content": [{"type": "content", "content": {"type": "text", "text": describe(request)}}],
        }
        params = {"sessionId": self._session.id, "toolCall": call, "options": offered}
        try:
            answer = await self._connection.request(METHOD, params, withdraws=True)
        except AcpError as problem:
            raise RuntimeError(f"the editor could not be asked: {problem}") from None
        return _read(request, answer.get("outcome"), {each["optionId"] for each in offered})


def _options(request: Request) -> list[dict[str, str]]:
    options = [
        {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
        {"optionId": "allow_session", "name": "Allow for this session", "kind": "allow_always"},
        {"optionId": "reject_once", "name": "Deny", "kind": "reject_once"},
    ]
    if request.lasting:
        rule = {"optionId": "allow_always", "name": f"Always: {request.lasting}", "kind": "allow_always"}
        options.insert(2, rule)
    return options


def _read(request: Request, outcome: Any, offered: set[str]) -> Answer:
    option = outcome.get("optionId") if isinstance(outcome, Mapping) and outcome.get("outcome") == "selected" else None
    by = "the user of the editor"
    if option == "reject_once":
        return request.deny(by=by)
    if option in offered:
        return request.allow(by=by, scope=_SCOPES[option])
    raise RuntimeError("the editor's answer is none of the options")
