"""How is a model told what came of its calls? The text it reads, in the message its provider expects."""

from collections.abc import Sequence
from typing import Any

from toolreeve.core.result import ToolResult
from toolreeve.formats.names import Provider, wire_name


def format_result(provider: str, id: str, result: ToolResult, *, name: str | None = None) -> dict[str, Any]:
    """The message that answers one call. `name` is the tool as the model called it, if not as the result has it."""
    return format_results(provider, [(id, result)], names=None if name is None else [name])[0]


def format_results(
    provider: str, answers: Sequence[tuple[str, ToolResult]], *, names: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """The messages that answer all calls of one message, some of which providers want in a single one."""
    whom = Provider.named(provider)
    called = names or [result.meta.tool for _, result in answers]
    parts = [_part(whom, id, result, wire_name(whom, name)) for (id, result), name in zip(answers, called, strict=True)]
    match whom:
        case Provider.ANTHROPIC:
            return [{"role": "user", "content": parts}] if parts else []
        case Provider.GEMINI:
            return [{"role": "user", "parts": parts}] if parts else []
        case _:
            return parts


def _part(provider: Provider, id: str, result: ToolResult, name: str) -> dict[str, Any]:
    match provider:
        case Provider.OPENAI:
            return {"role": "tool", "tool_call_id": id, "content": result.to_text()}
        case Provider.OPENAI_RESPONSES:
            return {"type": "function_call_output", "call_id": id, "output": result.to_text()}
        case Provider.ANTHROPIC:
            return {
                "type": "tool_result",
                "tool_use_id": id,
                "content": result.to_text(),
                "is_error": not result.success,
            }
        case Provider.OLLAMA:
            return {"role": "tool", "tool_name": name, "content": result.to_text()}
        case Provider.GEMINI:
            told = {"output" if result.success else "error": result.to_text()}
            return {"functionResponse": ({"id": id} if id else {}) | {"name": name, "response": told}}
        case Provider.MCP:
            return result.to_mcp()
