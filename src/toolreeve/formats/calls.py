"""Tool calls in a model's message, as plain data or SDK objects.

Never raises for a message: arguments that cannot be parsed stay as they came, which no tool's schema accepts, so that
the pipeline refuses and records them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ToolreeveError
from toolreeve.formats.names import Provider, tool_name


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """`id` is what the result must refer to, empty if the provider has none. If `problem` says what is wrong with the
    arguments, `args` is not a mapping but what the model sent."""

    name: str
    args: Any
    id: str = ""
    problem: str | None = None


def parse_calls(provider: str, message: Any, known: Iterable[str] = ()) -> list[ParsedCall]:
    """The calls in a response, a message, or a list of its parts, in order. `known` are the names of the tools, needed
    to decode names that were too long for the provider."""
    source = Provider.named(provider)
    return [_parse(source, raw, known) for raw in _FINDERS[source](message)]


def find_provider(response: Any) -> str:
    """Whose response it is, by its shape. Raises ToolreeveError for another one."""
    for name, provider in _SHAPES.items():
        if _field(response, name) is not None:
            return provider
    raise ToolreeveError("whose response is this? Name the provider: run_tool_calls('openai', response)")


_SHAPES = {
    "choices": Provider.OPENAI,
    "output": Provider.OPENAI_RESPONSES,
    "candidates": Provider.GEMINI,
    "stop_reason": Provider.ANTHROPIC,
    "message": Provider.OLLAMA,
}
"""By a field that only the responses of this provider have."""


@dataclass(frozen=True, slots=True)
class _RawCall:
    name: Any
    args: Any
    id: Any


def _parse(provider: Provider, raw: _RawCall, known: Iterable[str]) -> ParsedCall:
    name = tool_name(provider, raw.name, known) if isinstance(raw.name, str) else ""
    id = str(raw.id) if isinstance(raw.id, str | int) else ""
    args, problem = _arguments(raw.args)
    return ParsedCall(name, args, id, problem)


def _arguments(raw: Any) -> tuple[Any, str | None]:
    """A mapping, or what came instead and why it is invalid. Nothing at all means no arguments."""
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
    """The first of these fields that is set, of a mapping or an object."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value
    return None


def _items(thing: Any) -> Sequence[Any]:
    return thing if isinstance(thing, list | tuple) else ()


def _openai(message: Any) -> Iterator[_RawCall]:
    """Chat completions (`tool_calls`) and the Responses API (`function_call` items), whole or in part."""
    for choice in _items(_field(message, "choices"))[:1]:
        message = _field(choice, "message")
    parts = [*_items(message), *_items(_field(message, "tool_calls")), *_items(_field(message, "output"))]
    if _field(message, "type") == "function_call":
        parts.append(message)
    for part in parts:
        if _field(part, "type") == "function_call":
            yield _RawCall(_field(part, "name"), _field(part, "arguments"), _field(part, "call_id", "id"))
        elif (function := _field(part, "function")) is not None:
            yield _RawCall(_field(function, "name"), _field(function, "arguments"), _field(part, "id"))


def _anthropic(message: Any) -> Iterator[_RawCall]:
    for block in _items(message) or _items(_field(message, "content")) or (message,):
        if _field(block, "type") == "tool_use":
            yield _RawCall(_field(block, "name"), _field(block, "input"), _field(block, "id"))


def _ollama(message: Any) -> Iterator[_RawCall]:
    inner = _field(message, "message")
    yield from _openai(message if inner is None else inner)


def _gemini(message: Any) -> Iterator[_RawCall]:
    for candidate in _items(_field(message, "candidates"))[:1]:
        message = _field(candidate, "content")
    for part in _items(message) or _items(_field(message, "parts")) or (message,):
        call = _field(part, "functionCall", "function_call")
        if call is not None:
            yield _RawCall(_field(call, "name"), _field(call, "args"), _field(call, "id"))


def _mcp(message: Any) -> Iterator[_RawCall]:
    """A `tools/call` request, or its parameters alone."""
    params = _field(message, "params")
    request = message if params is None else params
    name = _field(request, "name")
    if name is not None and _field(message, "method") in (None, "tools/call"):
        yield _RawCall(name, _field(request, "arguments"), _field(message, "id"))


_FINDERS = {
    Provider.OPENAI: _openai,
    Provider.OPENAI_RESPONSES: _openai,
    Provider.ANTHROPIC: _anthropic,
    Provider.OLLAMA: _ollama,
    Provider.GEMINI: _gemini,
    Provider.MCP: _mcp,
}
