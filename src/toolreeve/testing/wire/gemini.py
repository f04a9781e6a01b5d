"""Gemini's `streamGenerateContent`, as a server."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolreeve.testing.script import Turn
from toolreeve.testing.wire.format import (
    RequestRejected,
    event,
    pieces,
    require_header,
    require_known,
    require_name,
)

_KNOWN = "contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent".split()
_SCHEMA_KEYS = frozenset(
    "type format title description nullable enum items properties required minItems maxItems minProperties "
    "maxProperties minimum maximum minLength maxLength pattern example anyOf propertyOrdering default".split()
)
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}


class GeminiFormat:
    def check(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        require_header(headers, "x-goog-api-key")
        require_known(body, _KNOWN)
        if not body.get("contents"):
            raise RequestRejected("contents is not specified")
        for tool in body.get("tools", ()):
            for declaration in tool["functionDeclarations"]:
                require_name(declaration["name"], 64)
                if "parameters" in declaration:
                    _check_schema(declaration["parameters"], declaration["name"])
        called = 0
        for content in body["contents"]:
            parts = content.get("parts")
            if content.get("role") not in ("user", "model") or not parts:
                raise RequestRejected("contents need a role, user or model, and parts")
            answered = sum("functionResponse" in part for part in parts)
            if answered != called:
                raise RequestRejected(
                    "the number of function response parts must equal the number of function call parts of the turn"
                )
            called = sum("functionCall" in part for part in parts)

    def events(self, turn: Turn, model: str) -> Iterator[str]:
        for text in pieces(turn.text):
            yield _chunk([{"text": text}], model)
        if turn.breaks_off:
            return
        for call in turn.calls:
            if call.raw is None:
                yield _chunk([{"functionCall": {"name": call.name, "args": dict(call.args)}}], model)
        yield event(_end(turn, [], model))

    def reply(self, turn: Turn, model: str) -> dict[str, Any]:
        said: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
        called = [{"functionCall": {"name": call.name, "args": dict(call.args)}} for call in turn.calls]
        return _end(turn, [*said, *called], model)

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "INTERNAL")}}


def _chunk(parts: list[dict[str, Any]], model: str) -> str:
    return event({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": model})


def _end(turn: Turn, parts: list[dict[str, Any]], model: str) -> dict[str, Any]:
    usage = {
        "promptTokenCount": turn.input_tokens,
        "candidatesTokenCount": turn.output_tokens,
        "totalTokenCount": turn.input_tokens + turn.output_tokens,
    }
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": _finish(turn), "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def _finish(turn: Turn) -> str:
    if turn.cut:
        return "MAX_TOKENS"
    if turn.refuses:
        return "SAFETY"
    return "MALFORMED_FUNCTION_CALL" if any(call.raw is not None for call in turn.calls) else "STOP"


def _check_schema(schema: Any, where: str) -> None:
    for name in schema.keys() - _SCHEMA_KEYS:
        raise RequestRejected(f'Invalid JSON payload received. Unknown name "{name}" at {where!r}')
    for child in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        _check_schema(child, where)
    if "items" in schema:
        _check_schema(schema["items"], where)
