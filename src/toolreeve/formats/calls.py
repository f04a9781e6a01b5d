"""Which calls does a model's message ask for? Read from plain data or from an SDK's objects alike.

Whatever a model sends, this answers with calls: arguments that cannot be read stay as they came, which no tool's schema
accepts, so that the road refuses them and records it. Nothing here raises over a message.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.core import json
from toolreeve.formats.names import Provider, tool_name


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """`id` is what the answer must name, empty where the provider gives none. Where `problem` says what is wrong with
    the arguments, `args` is not a mapping but what the model sent."""

    name: str
    args: Any
    id: str = ""
    problem: str | None = None


def parse_calls(provider: str, message: Any, known: Iterable[str] = ()) -> list[ParsedCall]:
    """The calls in a response, a message, or a list of its parts, in their order. `known` are the names of the tools,
    needed to read back names that were too long for the provider."""
    whom = Provider.named(provider)
    found = _FINDERS[whom](message)
    return [_parsed(whom, asked, known) for asked in found]


@dataclass(frozen=True, slots=True)
class _Asked:
    name: Any
    args: Any
    id: Any


def _parsed(provider: Provider, asked: _Asked, known: Iterable[str]) -> ParsedCall:
    name = tool_name(provider, asked.name, known) if isinstance(asked.name, str) else ""
    args, problem = _arguments(asked.args)
    return ParsedCall(name, args, str(asked.id) if isinstance(asked.id, str | int) else "", problem)


def _arguments(raw: Any) -> tuple[Any, str | None]:
    """A mapping, or what came instead and why it is none. Nothing at all means no arguments."""
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}, None
    value = raw
    if isinstance(raw, str):
        try:
            value = json.loads(raw)
        except ValueError as problem:
            return raw, f"the arguments are not valid JSON: {problem}"
    if isinstance(value, Mapping):
        return dict(value), None
    return raw, f"the arguments must be a JSON object, got {type(value).__name__}"


def _field(thing: Any, *names: str) -> Any:
    """The first of these that the thing has, whether it is a mapping or an object."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value
    return None


def _items(thing: Any) -> Sequence[Any]:
    return thing if isinstance(thing, list | tuple) else ()


def _openai(message: Any) -> Iterator[_Asked]:
    """Chat completions (`tool_calls`) and the Responses API (`function_call` items), whole or in part."""
    for choice in _items(_field(message, "choices"))[:1]:
        message = _field(choice, "message")
    parts = [*_items(message), *_items(_field(message, "tool_calls")), *_items(_field(message, "output"))]
    if _field(message, "type") == "function_call":
        parts.append(message)
    for part in parts:
        if _field(part, "type") == "function_call":
            yield _Asked(_field(part, "name"), _field(part, "arguments"), _field(part, "call_id", "id"))
        elif (function := _field(part, "function")) is not None:
            yield _Asked(_field(function, "name"), _field(function, "arguments"), _field(part, "id"))


def _anthropic(message: Any) -> Iterator[_Asked]:
    for block in _items(message) or _items(_field(message, "content")) or (message,):
        if _field(block, "type") == "tool_use":
            yield _Asked(_field(block, "name"), _field(block, "input"), _field(block, "id"))


def _ollama(message: Any) -> Iterator[_Asked]:
    inner = _field(message, "message")
    yield from _openai(message if inner is None else inner)


def _gemini(message: Any) -> Iterator[_Asked]:
    for candidate in _items(_field(message, "candidates"))[:1]:
        message = _field(candidate, "content")
    for part in _items(message) or _items(_field(message, "parts")) or (message,):
        call = _field(part, "functionCall", "function_call")
        if call is not None:
            yield _Asked(_field(call, "name"), _field(call, "args"), _field(call, "id"))


def _mcp(message: Any) -> Iterator[_Asked]:
    """A `tools/call` request, or its parameters alone."""
    params = _field(message, "params")
    asked = message if params is None else params
    name = _field(asked, "name")
    if name is not None and _field(message, "method") in (None, "tools/call"):
        yield _Asked(name, _field(asked, "arguments"), _field(message, "id"))


_FINDERS = {
    Provider.OPENAI: _openai,
    Provider.OPENAI_RESPONSES: _openai,
    Provider.ANTHROPIC: _anthropic,
    Provider.OLLAMA: _ollama,
    Provider.GEMINI: _gemini,
    Provider.MCP: _mcp,
}
