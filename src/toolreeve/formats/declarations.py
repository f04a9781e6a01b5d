"""How is a model told which tools there are? One declaration a tool, in the provider's own shape."""

from collections.abc import Iterable, Mapping
from typing import Any

from toolreeve.core.tool import ToolSpec
from toolreeve.formats.gemini import gemini_schema
from toolreeve.formats.names import Provider, wire_name
from toolreeve.formats.promises import answer_schema


def tools_for(provider: str, specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """What to pass as `tools`. Raises ToolreeveError for a provider that is not known."""
    whom = Provider.named(provider)
    declared = [_declare(whom, spec, wire_name(whom, spec.name)) for spec in specs]
    if whom is Provider.GEMINI:
        return [{"functionDeclarations": declared}] if declared else []
    return declared


def _declare(provider: Provider, spec: ToolSpec, name: str) -> dict[str, Any]:
    named = {"name": name, "description": spec.description}
    match provider:
        case Provider.OPENAI | Provider.OLLAMA:
            return {"type": "function", "function": named | {"parameters": _object(spec.input)}}
        case Provider.OPENAI_RESPONSES:
            return {"type": "function", **named, "parameters": _object(spec.input)}
        case Provider.ANTHROPIC:
            return named | {"input_schema": _object(spec.input)}
        case Provider.MCP:
            output = {} if spec.output is None else {"outputSchema": answer_schema(spec.output)}
            return named | {"inputSchema": _object(spec.input)} | output
        case Provider.GEMINI:
            parameters = gemini_schema(spec.input)
            # A declaration with an empty object is refused; a function without parameters has none.
            return named | ({} if parameters.keys() <= {"type"} else {"parameters": parameters})


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Providers insist on both keys, even for a tool that takes nothing."""
    return {"type": "object", "properties": {}} | dict(schema)
