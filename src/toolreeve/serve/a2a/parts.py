"""A2A parts: results and questions as a caller reads them."""

from collections.abc import Mapping
from typing import Any

from a2a.types import Artifact, Part, TaskState
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from toolreeve.core import json
from toolreeve.core.errors import TRAITS, ErrorCode, Severity
from toolreeve.core.result import Failed, ToolResult
from toolreeve.serve.a2a.files import files_of

OPTIONS = (
    {"optionId": "allow_once", "kind": "allow_once", "name": "Allow once"},
    {"optionId": "reject_once", "kind": "reject_once", "name": "Reject"},
)


def data_part(value: Any) -> Part:
    return Part(data=ParseDict(json.loads(json.dumps(value)), Value()), media_type="application/json")


def new_artifact(number: str, result: ToolResult) -> Artifact:
    """The result of the call that the caller named `number`: files first; then its text and its data, what is
    meant by the output before the other."""
    files = files_of(result.meta.images, result.meta.raw)
    data = {"error": result.error.to_dict()} if isinstance(result, Failed) else dict(result.data)
    shown = [Part(text=result.to_text(), media_type="text/plain"), data_part(data)]
    if not isinstance(result, Failed) and result.outcome.main is None:
        shown.reverse()
    artifact = Artifact(artifact_id=number, name=result.meta.tool, parts=[*files, *shown])
    artifact.metadata.update({"success": result.success, "callId": result.meta.call_id})
    return artifact


def state_of(result: ToolResult) -> TaskState:
    """Of a task whose call ended so."""
    if not isinstance(result, Failed):
        return TaskState.TASK_STATE_COMPLETED
    code = result.error.code
    if code in (ErrorCode.APPROVAL_DENIED, ErrorCode.CANCELLED):
        return TaskState.TASK_STATE_CANCELED
    refused = TRAITS[code].severity is Severity.FATAL
    return TaskState.TASK_STATE_REJECTED if refused else TaskState.TASK_STATE_FAILED


def describe_question(card: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent is told about a question."""
    return {
        "approvalId": card["id"],
        "prompt": card["sentence"],
        "input_types": ["permission"],
        "permission_options": [dict(each) for each in OPTIONS],
        "tool_call": {"toolId": card["tool"], "parameters": card.get("args", {}), "callId": card.get("call_id", "")},
        "governor_summary": card.get("governors", []),
        "policy_decision": {"reason": card.get("why", ""), "rule": card.get("rule"), "layer": card.get("layer", "")},
        "expires": card["expires"],
    }
