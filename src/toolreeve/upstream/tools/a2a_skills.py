"""Skills of A2A agents as MCP tools, in versions 1.0 and 0.3."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

VERSIONS = ("1.0", "0.3")
MAX_SKILLS = 500
RUNNING = frozenset({"submitted", "working"})
WAITING = frozenset({"input-required", "auth-required"})
INPUT: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "message": {"type": "string", "description": "What the agent is to do, or the answer to its question."},
        "data": {"type": "object", "description": "Structured input, if the skill takes any."},
        "context_id": {"type": "string", "description": "Continues an earlier conversation."},
        "task_id": {"type": "string", "description": "The task whose question is answered."},
    },
    "required": ["message"],
}


@dataclass(frozen=True, slots=True)
class AgentEndpoint:
    """Where an agent takes JSON-RPC, and in which version."""

    url: str
    version: str

    def message(self, skill: str, arguments: Mapping[str, Any], number: str) -> tuple[str, Mapping[str, Any]]:
        """Method and parameters."""
        old = self.version == "0.3"
        parts: list[dict[str, Any]] = [{"text": arguments.get("message", "")}]
        if "data" in arguments:
            parts.append({"data": arguments["data"]})
        if old:
            parts = [{"kind": next(iter(part)), **part} for part in parts]
        message: dict[str, Any] = {"messageId": number, "parts": parts, "metadata": {"skillId": skill}}
        message |= {"kind": "message", "role": "user"} if old else {"role": "ROLE_USER"}
        for key, name in (("context_id", "contextId"), ("task_id", "taskId")):
            if arguments.get(key):
                message[name] = arguments[key]
        if old:
            return "message/send", {"message": message, "configuration": {"blocking": True}}
        return "SendMessage", {"message": message}

    def about(self, method: str, task: str) -> tuple[str, Mapping[str, Any]]:
        old = {"GetTask": "tasks/get", "CancelTask": "tasks/cancel"}
        return (old[method] if self.version == "0.3" else method), {"id": task}


def find_endpoint(card: Mapping[str, Any]) -> AgentEndpoint | None:
    """The JSON-RPC endpoint of the newest version that we speak."""
    offered = card.get("supportedInterfaces")
    for version in VERSIONS:
        for each in offered if isinstance(offered, list) else ():
            match each:
                case {"url": str(url), "protocolBinding": "JSONRPC", "protocolVersion": str(found)} if found == version:
                    return AgentEndpoint(url, version)
    match card:
        case {"url": str(url), "protocolVersion": str(found)} if found.startswith("0.3"):
            if card.get("preferredTransport", "JSONRPC") == "JSONRPC":
                return AgentEndpoint(url, "0.3")
    return None


def skills_as_tools(card: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What of a skill has no valid form is left for the registration to name and leave out."""
    skills = card.get("skills")
    return [_tool(skill) for skill in (skills if isinstance(skills, list) else ())[:MAX_SKILLS]]


def _tool(skill: Any) -> Mapping[str, Any]:
    if not isinstance(skill, Mapping):
        return {}
    description = str(skill.get("description", ""))
    if examples := [each for each in skill.get("examples") or () if isinstance(each, str)]:
        description += f"\nExamples: {'; '.join(examples[:5])}"
    tool = {"name": skill.get("id"), "description": description, "inputSchema": INPUT}
    return {**tool, "title": skill["name"]} if isinstance(skill.get("name"), str) else tool


def is_running(answer: Mapping[str, Any]) -> bool:
    return isinstance(answer.get("id"), str) and _state(answer) in RUNNING


def read_answer(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """A task or a message as a CallToolResult."""
    state = _state(answer)
    artifacts = answer.get("artifacts")
    found = [part for each in _tables(artifacts) for part in _tables(each.get("parts"))]
    said = _tables(_table(_table(answer.get("status")).get("message")).get("parts")) or _tables(answer.get("parts"))
    parts = [*found, *said]
    content = [block for part in parts if (block := _block(part)) is not None]
    structured: dict[str, Any] = {"state": state or "completed"}
    if state:
        structured |= {"task_id": answer.get("id"), "context_id": answer.get("contextId")}
    if data := [part["data"] for part in parts if "data" in part]:
        structured["data"] = data
    if state in WAITING:
        text = f"The agent waits for an answer: call this again with task_id {str(answer.get('id'))!r}."
        content.append({"type": "text", "text": text})
    failed = state not in WAITING and state not in ("", "completed")
    return {"content": content, "structuredContent": structured, "isError": failed}


def _state(answer: Mapping[str, Any]) -> str:
    """In the words of version 0.3; empty for a message."""
    state = _table(answer.get("status")).get("state")
    return str(state or "").removeprefix("TASK_STATE_").lower().replace("_", "-")


def _block(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    match part:
        case {"text": str(text)}:
            return {"type": "text", "text": text}
        case {"raw": str(data)}:
            return _file(data, part.get("filename"), part.get("mediaType"))
        case {"file": {"bytes": str(data)} as file}:
            return _file(data, file.get("name"), file.get("mimeType"))
        case {"url": str(uri)} | {"file": {"uri": str(uri)}}:
            return {"type": "resource_link", "uri": uri, "name": uri.rpartition("/")[2] or uri}
        case _:
            return None


def _file(data: str, name: Any, kind: Any) -> Mapping[str, Any]:
    media = str(kind or "application/octet-stream")
    if media.startswith("image/"):
        return {"type": "image", "data": data, "mimeType": media}
    return {"type": "resource", "resource": {"uri": f"a2a:/{name or 'file'}", "blob": data, "mimeType": media}}


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, Iterable) else []
