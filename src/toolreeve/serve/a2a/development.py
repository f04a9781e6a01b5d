"""The development-tool extension: the life of each tool call as status updates.

A caller activates it with the header A2A-Extensions. Its messages hold the call as a data part, its events the kind.
"""

from collections.abc import Mapping
from typing import Any

from a2a.types import AgentExtension, Part

from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import Failed, ToolResult
from toolreeve.serve.a2a.parts import OPTIONS, data_part

URI = "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md"
EXTENSION = AgentExtension(uri=URI, description="Tool calls as status updates; commands/get and command/execute.")
HEADERS = ("a2a-extensions", "x-a2a-extensions")
CONFIRMATION = "TOOL_CALL_CONFIRMATION"
UPDATE = "TOOL_CALL_UPDATE"


def is_activated(headers: Mapping[str, str]) -> bool:
    return any(each.strip() == URI for name in HEADERS for each in headers.get(name, "").split(","))


class CallLife:
    """The current call of a turn. Without the extension there is nothing to tell: all is empty."""

    def __init__(self, turn: Mapping[str, Any]) -> None:
        self._turn = turn
        self.is_told = bool(turn.get("development"))

    def metadata(self, kind: str) -> dict[str, Any]:
        return {URI: {"kind": kind}} if self.is_told else {}

    def executing(self) -> list[Part]:
        return self._parts("EXECUTING")

    def asking(self, question: Mapping[str, Any]) -> list[Part]:
        options = [{"id": each["optionId"], "name": each["name"]} for each in OPTIONS]
        details = {"genericDetails": {"description": question.get("prompt", "")}}
        return self._parts("PENDING", confirmationRequest={"options": options, **details})

    def ended(self, result: ToolResult) -> list[Part]:
        if not isinstance(result, Failed):
            return self._parts("SUCCEEDED", output={"text": result.to_text()})
        error = {"message": result.error.message, "type": result.error.code.value}
        stopped = result.error.code in (ErrorCode.APPROVAL_DENIED, ErrorCode.CANCELLED)
        return self._parts("CANCELLED" if stopped else "FAILED", error=error)

    def _parts(self, status: str, **details: Any) -> list[Part]:
        if not self.is_told:
            return []
        requested = self._turn["calls"][self._turn["next"]]
        call = {"toolCallId": requested["id"], "status": status, "toolName": requested["tool"]}
        return [data_part({**call, "inputParameters": requested["args"], **details})]
