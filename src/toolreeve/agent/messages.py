"""Messages of a conversation with a model, independent of the provider."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from toolreeve.core.tool import ToolSpec
from toolreeve.formats import ParsedCall
from toolreeve.formats.names import Provider, wire_name
from toolreeve.formats.results import format_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage:
    """`raw` is the turn in the provider's own format. It is sent back unchanged, because signatures of hidden
    reasoning are lost otherwise; another provider gets `text` and `calls` instead."""

    text: str
    calls: tuple[ParsedCall, ...] = ()
    provider: str = ""
    raw: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """`call_id` and `labels` are those of the result on record; the model does not get them."""

    id: str
    name: str
    text: str
    is_error: bool
    call_id: str = ""
    labels: tuple[str, ...] = ()

    def to_wire(self, provider: Provider) -> dict[str, Any]:
        name = wire_name(provider, self.name)
        return format_answer(provider, self.id, self.text, name=name, is_error=self.is_error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessage:
    """The answers to all calls of the turn before, in its order: providers refuse a turn with a call unanswered."""

    answers: tuple[ToolAnswer, ...]


Message = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one turn. `input` includes those read from or written to the provider's cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: "TokenUsage") -> "TokenUsage":
        return TokenUsage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    model: str
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """`cut` means that the reply ended at the limit of tokens: its last call may be incomplete."""

    message: AssistantMessage
    usage: TokenUsage
    cut: bool = False


def to_dict(message: Message) -> dict[str, Any]:
    """Plain data, without the provider's own format."""
    match message:
        case UserMessage(text=text):
            return {"role": "user", "text": text}
        case AssistantMessage(text=text, calls=calls):
            shown = [{"id": call.id, "name": call.name, "args": call.args} for call in calls]
            return {"role": "assistant", "text": text, "calls": shown}
        case ToolMessage(answers=answers):
            return {
                "role": "tool",
                "answers": [{**asdict(answer), "labels": list(answer.labels)} for answer in answers],
            }


def from_dict(data: Mapping[str, Any]) -> Message:
    """Raises KeyError for data that is no message."""
    match data["role"]:
        case "user":
            return UserMessage(text=data["text"])
        case "assistant":
            calls = tuple(ParsedCall(call["name"], call["args"], call["id"]) for call in data["calls"])
            return AssistantMessage(text=data["text"], calls=calls)
        case "tool":
            told = ({**answer, "labels": tuple(answer.get("labels", ()))} for answer in data["answers"])
            return ToolMessage(answers=tuple(ToolAnswer(**answer) for answer in told))
        case other:
            raise KeyError(f"no message has the role {other!r}")
