"""A2A messages: tool calls and answers, read without guessing.

Calls come as a data part `{"toolCalls": [{"id", "toolId", "parameters"}]}` or `{"toolId", "parameters"}`, or as text
`/tool name=value`. An answer is an option id in a data part, in the metadata, or as the whole text.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from a2a.types import Message
from a2a.utils.errors import ContentTypeNotSupportedError, InvalidParamsError
from google.protobuf.json_format import MessageToDict

from toolreeve.approval.options import OptionKind, kind_of_id
from toolreeve.core import json
from toolreeve.core.tool import ToolSpec
from toolreeve.serve.a2a.files import MessageFiles

MAX_CALLS = 100
LONGEST_TEXT = 10_000
CALL_KEYS = {"id", "toolId", "parameters"}
ANSWER_KEYS = (
    "optionId",
    "permissionOptionId",
    "selectedOptionId",
    "selected_option_id",
    "decision",
    "confirmed",
)
FORMS = 'send a data part {"toolCalls": [{"id": "1", "toolId": "…", "parameters": {…}}]}, or the text: /tool name=value'
OFFERED = {OptionKind.ALLOW_ONCE: True, OptionKind.REJECT_ONCE: False}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """`id` is the caller's own name for the call."""

    id: str
    tool: str
    args: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "tool": self.tool, "args": dict(self.args)}


def read_calls(message: Message, *, max_file_bytes: int, agents: Sequence[str] = ()) -> list[RequestedCall]:
    """Plain text goes to the only one of the `agents`, tools that take a prompt, or to the one that the metadata names
    as `agent_name`. Raises InvalidParamsError, or ContentTypeNotSupportedError for a file alone or by address."""
    files = MessageFiles(message, max_file_bytes)
    found = [call for part in _data(message) for call in _calls_of(part)]
    text = _text(message)
    if text.startswith("/"):
        found += _command(text)
    elif text and not found and (agent := _agent(message, agents)):
        found = [RequestedCall(id="", tool=agent, args={"prompt": text})]
    elif text and not found:
        raise InvalidParamsError(message=f"the text names no tool; {FORMS}")
    if not found and files:
        raise ContentTypeNotSupportedError(message=f"a file alone is no tool call; {FORMS}")
    if not found:
        raise InvalidParamsError(message=f"the message has no tool call; {FORMS}")
    if len(found) > MAX_CALLS:
        raise InvalidParamsError(message=f"{len(found)} tool calls in one message; at most {MAX_CALLS}")
    filled = [replace(call, args=files.fill(call.args)) for call in _numbered(found)]
    files.check_used()
    return filled


def asks_for_help(message: Message) -> bool:
    return len(message.parts) == 1 and message.parts[0].text.strip() == "/help"


def help_text(specs: Iterable[ToolSpec]) -> str:
    """How calls are written, and a line for each tool."""
    return "\n".join((FORMS, "", *map(_help_line, specs)))


def _help_line(spec: ToolSpec) -> str:
    required = spec.input.get("required", ())
    names = [name if name in required else f"[{name}]" for name in spec.input.get("properties", {})]
    return f"/{' '.join((spec.name, *names))}: {spec.description.partition(chr(10))[0]}"


def _agent(message: Message, agents: Sequence[str]) -> str:
    metadata = plain(message.metadata)
    named = metadata.get("agent_name") if isinstance(metadata, Mapping) else None
    if named is None:
        return agents[0] if len(agents) == 1 else ""
    return next((each for each in agents if named in (each, each.removeprefix("agent_"))), "")


def read_answer(message: Message) -> bool | None:
    """True for yes, False for no; None if the message says neither, or both."""
    sources = [*_data(message), plain(message.metadata)]
    said = {meant for source in sources if isinstance(source, Mapping) for meant in _answers_of(source)}
    text = _text(message)
    if text and not said:
        said = {meaning_of(text)}
    return said.pop() if len(said) == 1 else None


def named_question(message: Message) -> str:
    """Which of several questions a message answers, by `approvalId`; empty for the first."""
    sources = [*_data(message), plain(message.metadata)]
    named = [each["approvalId"] for each in sources if isinstance(each, Mapping) and "approvalId" in each]
    return str(named[0]) if named else ""


def meaning_of(option: Any) -> bool | None:
    """Of an option id or its spellings; None for whatever is not offered, such as an approval for always."""
    if not isinstance(option, str):
        return None
    kind = kind_of_id(option.strip().rstrip(".!"))
    return None if kind is None else OFFERED.get(kind)


def plain(value: Any) -> Any:
    """The JSON data of a protobuf value. Its numbers are all floating; whole ones become integers again."""
    return _whole(MessageToDict(value))


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {key: _whole(each) for key, each in value.items()}
        case list():
            return [_whole(each) for each in value]
        case _:
            return value


def _answers_of(source: Mapping[str, Any]) -> list[bool | None]:
    given = [source[key] for key in ANSWER_KEYS if key in source]
    return [each if isinstance(each, bool) else meaning_of(each) for each in given]


def _data(message: Message) -> list[Any]:
    return [plain(part.data) for part in message.parts if part.HasField("data")]


def _text(message: Message) -> str:
    text = "\n".join(part.text for part in message.parts if part.HasField("text")).strip()
    if len(text) > LONGEST_TEXT:
        raise InvalidParamsError(message=f"the text has {len(text):,} characters; at most {LONGEST_TEXT:,}")
    return text


def _calls_of(part: Any) -> Sequence[RequestedCall]:
    if not isinstance(part, Mapping) or not ("toolCalls" in part or "toolId" in part):
        raise InvalidParamsError(message=f"a data part is no tool call; {FORMS}")
    if "toolCalls" not in part:
        return [_call(part)]
    calls = part["toolCalls"]
    if not isinstance(calls, list) or not all(isinstance(each, Mapping) for each in calls):
        raise InvalidParamsError(message="toolCalls must be a list of objects")
    return [_call(each) for each in calls]


def _call(value: Mapping[str, Any]) -> RequestedCall:
    if unknown := sorted(set(value) - CALL_KEYS):
        raise InvalidParamsError(message=f"unknown key {unknown[0]!r:.60}; a tool call has id, toolId and parameters")
    tool, args, number = value.get("toolId"), value.get("parameters", {}), value.get("id", "")
    if not isinstance(tool, str) or not tool or not isinstance(args, Mapping):
        raise InvalidParamsError(message="a tool call needs a text toolId, and its parameters are an object")
    return RequestedCall(id=str(number)[:100], tool=tool[:200], args=args)


def _command(text: str) -> list[RequestedCall]:
    try:
        name, *words = shlex.split(text[1:])
    except ValueError as problem:
        raise InvalidParamsError(message=f"the command cannot be read: {problem}; {FORMS}") from None
    pairs = [word.partition("=") for word in words]
    if bad := next((key for key, sign, _ in pairs if not sign or not key), None):
        raise InvalidParamsError(message=f"{bad!r:.60} is not name=value; {FORMS}")
    return [RequestedCall(id="", tool=name, args={key: _value(value) for key, _, value in pairs})]


def _value(text: str) -> Any:
    """JSON if it is a number, true, false, null, a list or an object; else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _numbered(calls: Sequence[RequestedCall]) -> list[RequestedCall]:
    named = [RequestedCall(id=call.id or str(n), tool=call.tool, args=call.args) for n, call in enumerate(calls, 1)]
    if len({call.id for call in named}) < len(named):
        raise InvalidParamsError(message="two tool calls of the message have the same id")
    return named
