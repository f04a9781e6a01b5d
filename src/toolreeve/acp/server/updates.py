"""Events of our agent's run as ACP session updates."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.agent.events import AgentEvent, EventKind
from toolreeve.agent.messages import AssistantMessage, Message, ToolMessage, UserMessage
from toolreeve.agent.phases import Phase
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files
from toolreeve.policy.known_tools import KNOWN, canonical
from toolreeve.record.recent_results import RecentResults

MAX_DIFF = 256 * 1024
"""Bytes of a file that are shown as a diff."""
MAX_OUTPUT = 100_000
_EDITS = ("write_file", "edit_file")
_KINDS = {
    "read_file": "read",
    "write_file": "edit",
    "edit_file": "edit",
    "delete_file": "delete",
    "move_file": "move",
    "search_text": "search",
    "search_files": "search",
    "search_directory": "search",
}
_CATEGORIES = {"file": "read", "shell": "execute", "quality": "execute", "http": "fetch", "web": "fetch"}


def kind_of(tool: str) -> str:
    name = canonical(tool)
    known = KNOWN.get(name)
    return _KINDS.get(name) or _CATEGORIES.get(known.category if known else "", "other")


def text_chunk(kind: str, text: str) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


class UpdateWriter:
    """`send` gets each update. `results` are those of recent calls, by our ids."""

    def __init__(self, files: Files, results: RecentResults, send: Callable[[dict[str, Any]], None], size: int) -> None:
        self._files = files
        self._results = results
        self._send = send
        self._size = size
        self._open: dict[str, tuple[str, Any, str | None]] = {}

    def find_call(self, tool: str, args: Any, default: str) -> str:
        """The id of a call that runs, as the editor knows it. `args` may have defaults that were not given."""
        for number, (name, given, _) in self._open.items():
            if name == tool and isinstance(given, Mapping) and given.items() <= args.items():
                return number
        return default

    def show(self, event: AgentEvent) -> None:
        data = event.data
        match event.kind:
            case EventKind.TEXT:
                self._send(text_chunk("agent_message_chunk", data["text"]))
            case EventKind.RETRIED:
                self._send(text_chunk("agent_thought_chunk", "The model's reply broke off; it is asked again."))
            case EventKind.TURN:
                used = data["usage"]["input"] + data["usage"]["output"]
                self._send({"sessionUpdate": "usage_update", "used": used, "size": self._size})
            case EventKind.TOOL_STARTED:
                self._start(data)
            case EventKind.TOOL_ENDED:
                self._end(data)
            case EventKind.PHASE:
                self._send(_plan(data["phase"]))

    def _start(self, data: Mapping[str, Any]) -> None:
        tool, args = canonical(data["tool"]), data["args"]
        path = args.get("path") if isinstance(args, Mapping) else None
        before = self._read(path) if tool in _EDITS else None
        self._open[data["id"]] = (tool, args, before)
        located = {"locations": [{"path": self._files.target(path)}]} if isinstance(path, str) and path else {}
        self._send(
            {
                "sessionUpdate": "tool_call",
                "toolCallId": data["id"],
                "title": _title(tool, args),
                "kind": kind_of(tool),
                "status": "in_progress",
                "rawInput": args,
                **located,
            }
        )

    def _end(self, data: Mapping[str, Any]) -> None:
        tool, args, before = self._open.pop(data["id"], (data["tool"], data["args"], None))
        update = {
            "sessionUpdate": "tool_call_update",
            "toolCallId": data["id"],
            "status": "completed" if data["success"] else "failed",
        }
        content = self._content(data)
        if tool in _EDITS and data["success"] and (after := self._read(args.get("path"))) is not None:
            path = self._files.target(args["path"])
            content = [{"type": "diff", "path": path, "oldText": before, "newText": after}]
        self._send({**update, "content": content})

    def _content(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        result = self._results.get(data["call_id"]) or {}
        shown = _output_of(result)
        return [{"type": "content", "content": {"type": "text", "text": shown[:MAX_OUTPUT]}}] if shown else []

    def _read(self, path: Any) -> str | None:
        """None for what is no text, too long, or not to be read."""
        if not isinstance(path, str):
            return None
        try:
            chunk = self._files.read(path, MAX_DIFF)
            return chunk.data.decode() if chunk.size <= MAX_DIFF else None
        except (ToolError, UnicodeDecodeError):
            return None


def _output_of(result: Mapping[str, Any]) -> str:
    """What a program printed, else the main value or the error."""
    data = result.get("data")
    if isinstance(data, Mapping) and "stdout" in data:
        return f"{data['stdout']}{data.get('stderr', '')}"
    error = result.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message", ""))
    output = result.get("output")
    return output if isinstance(output, str) else ""


def _title(tool: str, args: Any) -> str:
    given = args if isinstance(args, Mapping) else {}
    about = next((given[key] for key in ("command", "path", "url", "pattern") if isinstance(given.get(key), str)), "")
    return f"{tool} {about}".strip()[:200]


def _plan(current: str) -> dict[str, Any]:
    order = [str(each) for each in Phase]
    reached = order.index(current) if current in order else 0
    entries = [
        {"content": name, "priority": "medium", "status": _status(number, reached)} for number, name in enumerate(order)
    ]
    return {"sessionUpdate": "plan", "entries": entries}


def _status(number: int, reached: int) -> str:
    if number < reached:
        return "completed"
    return "in_progress" if number == reached else "pending"


def replay(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The updates that show an earlier conversation."""
    updates: list[dict[str, Any]] = []
    for message in messages:
        match message:
            case UserMessage(text=text):
                updates.append(text_chunk("user_message_chunk", text))
            case AssistantMessage(text=text, calls=calls):
                updates += [text_chunk("agent_message_chunk", text)] if text else []
                updates += [
                    {
                        "sessionUpdate": "tool_call",
                        "toolCallId": call.id,
                        "title": _title(call.name, call.args),
                        "kind": kind_of(call.name),
                        "status": "in_progress",
                        "rawInput": call.args,
                    }
                    for call in calls
                ]
            case ToolMessage(answers=answers):
                updates += [
                    {
                        "sessionUpdate": "tool_call_update",
                        "toolCallId": answer.id,
                        "status": "failed" if answer.is_error else "completed",
                        "content": [{"type": "content", "content": {"type": "text", "text": answer.text}}],
                    }
                    for answer in answers
                ]
    return updates
