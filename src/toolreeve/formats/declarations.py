"""Tool declarations in each provider's shape."""

from collections.abc import Iterable, Mapping
from typing import Any

from toolreeve.core.tool import ToolSpec
from toolreeve.formats.gemini import gemini_schema
from toolreeve.formats.names import Provider, wire_name
from toolreeve.formats.result_schema import result_schema


def tools_for(provider: str, specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """The value of the request's `tools`. Raises ToolreeveError for an unknown provider."""
    target = Provider.named(provider)
    declared = [_declare(target, spec, wire_name(target, spec.name)) for spec in specs]
    if target is Provider.GEMINI:
        return [{"functionDeclarations": declared}] if declared else []
    return declared


def _declare(provider: Provider, spec: ToolSpec, name: str) -> dict[str, Any]:
    named: dict[str, Any] = {"name": name, "description": spec.description}
    match provider:
        case Provider.OPENAI | Provider.OLLAMA:
            return {"type": "function", "function": named | {"parameters": _object(spec.input)}}
        case Provider.OPENAI_RESPONSES:
            return {"type": "function", **named, "parameters": _object(spec.input)}
        case Provider.ANTHROPIC:
            return named | {"input_schema": _object(spec.input)}
        case Provider.MCP:
            declared = named | {"inputSchema": _object(spec.input)}
            if spec.output is not None:
                declared["outputSchema"] = result_schema(spec.output)
            return declared
        case Provider.GEMINI:
            parameters = gemini_schema(spec.input)
            # Gemini refuses a declaration with an empty object; a function without parameters has none.
            return named if parameters.keys() <= {"type"} else named | {"parameters": parameters}


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Providers require both keys, even for a tool without parameters."""
    return {"type": "object", "properties": {}} | dict(schema)
