"""Tool results as the messages each model provider expects."""

from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core.result import ToolResult
from toolreeve.formats.names import Provider, wire_name


def format_result(provider: str, id: str, result: ToolResult, *, name: str | None = None) -> dict[str, Any]:
    """The message with the result of one call. `name` is the tool as the model called it, if the result has another."""
    names = None if name is None else [name]
    return format_results(provider, [(id, result)], names=names)[0]


def format_results(
    provider: str, answers: Sequence[tuple[str, ToolResult]], *, names: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """The messages with the results of all calls of one message; some providers need a single one."""
    target = Provider.named(provider)
    called = names or [result.meta.tool for _, result in answers]
    parts = [
        _part(target, id, result, wire_name(target, name)) for (id, result), name in zip(answers, called, strict=True)
    ]
    if not parts:
        return []
    match target:
        case Provider.ANTHROPIC:
            return [{"role": "user", "content": parts}]
        case Provider.GEMINI:
            return [{"role": "user", "parts": parts}]
        case _:
            return parts


def _part(provider: Provider, id: str, result: ToolResult, name: str) -> dict[str, Any]:
    if provider is Provider.MCP:
        return result.to_mcp()
    part = format_answer(provider, id, result.to_text(), name=name, is_error=not result.success)
    if provider is Provider.ANTHROPIC and result.meta.images:
        part["content"] = [{"type": "text", "text": part["content"]}, *map(_anthropic_image, result.meta.images)]
    return part


def _anthropic_image(image: Mapping[str, str]) -> dict[str, Any]:
    source = {"type": "base64", "media_type": image["mimeType"], "data": image["data"]}
    return {"type": "image", "source": source}


def format_answer(provider: Provider, id: str, text: str, *, name: str, is_error: bool) -> dict[str, Any]:
    """The part of a message that answers one call with text. `name` is the tool as the provider writes it."""
    match provider:
        case Provider.OPENAI:
            return {"role": "tool", "tool_call_id": id, "content": text}
        case Provider.OPENAI_RESPONSES:
            return {"type": "function_call_output", "call_id": id, "output": text}
        case Provider.ANTHROPIC:
            return {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}
        case Provider.OLLAMA:
            return {"role": "tool", "tool_name": name, "content": text}
        case Provider.GEMINI:
            response = {"error" if is_error else "output": text}
            identified = {"id": id} if id else {}
            return {"functionResponse": identified | {"name": name, "response": response}}
        case Provider.MCP:
            return {"content": [{"type": "text", "text": text}], "isError": is_error}
