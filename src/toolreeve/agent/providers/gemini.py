"""Gemini's native API, over HTTP: `streamGenerateContent` as server-sent events."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2

from toolreeve.agent.errors import from_status
from toolreeve.agent.messages import (
    AssistantMessage,
    Message,
    ModelReply,
    ModelRequest,
    TokenUsage,
    ToolMessage,
    UserMessage,
)
from toolreeve.agent.providers import OnText
from toolreeve.agent.providers.sdk import broke_off, new_http_client, refused, translated
from toolreeve.core import json
from toolreeve.formats import parse_calls, tools_for
from toolreeve.formats.names import Provider, wire_name


class Gemini:
    name = "gemini"

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        url = f"models/{request.model}:streamGenerateContent?alt=sse"
        parts: list[dict[str, Any]] = []
        usage = TokenUsage()
        finish = ""
        with translated(self.name):
            async for chunk in self._stream(url, _body(request)):
                usage = _usage(chunk.get("usageMetadata")) or usage
                for candidate in (chunk.get("candidates") or ())[:1]:
                    finish = candidate.get("finishReason") or finish
                    for part in (candidate.get("content") or {}).get("parts") or ():
                        parts.append(part)
                        if part.get("text") and not part.get("thought"):
                            on_text(part["text"])
                if blocked := (chunk.get("promptFeedback") or {}).get("blockReason"):
                    raise refused(self.name, blocked)
            if not finish:
                raise broke_off(self.name)
            if finish == "MALFORMED_FUNCTION_CALL":  # the call itself is not sent, so that it cannot be answered
                raise broke_off(self.name, "the model wrote a malformed call")
            if finish not in ("STOP", "MAX_TOKENS"):
                raise refused(self.name, finish)
            return _reply(parts, usage, finish, request)

    async def _stream(self, url: str, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        async with self._client.stream("POST", url, json=body) as response:
            if response.status_code != 200:
                await response.aread()
                raise from_status(self.name, response.status_code, _body_of(response), response.headers)
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    yield json.loads(line.removeprefix("data:"))

    async def close(self) -> None:
        await self._client.aclose()


def connect(_: str, *, api_key: str, base_url: str | None, timeout: float) -> Gemini:
    address = f"{str(base_url).rstrip('/')}/"
    return Gemini(new_http_client(base_url=address, headers={"x-goog-api-key": api_key}, timeout=timeout))


def _body_of(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {"contents": [_wire(message) for message in request.messages]}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = tools_for("gemini", request.tools)
    generation: dict[str, Any] = {}
    if request.temperature is not None:
        generation["temperature"] = request.temperature
    if request.max_tokens is not None:
        generation["maxOutputTokens"] = request.max_tokens
    return body | ({"generationConfig": generation} if generation else {})


def _wire(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text=text):
            return {"role": "user", "parts": [{"text": text}]}
        case AssistantMessage(provider="gemini", raw=list(parts)):
            return {"role": "model", "parts": list(parts)}
        case AssistantMessage(text=text, calls=calls):
            said: list[dict[str, Any]] = [{"text": text}] if text else []
            called = [
                {
                    "functionCall": {
                        "name": wire_name(Provider.GEMINI, call.name),
                        "args": call.args if isinstance(call.args, dict) else {},
                    }
                }
                for call in calls
            ]
            return {"role": "model", "parts": [*said, *called] or [{"text": "(nothing)"}]}
        case ToolMessage(answers=answers):
            named = [replace(answer, id="") if answer.id.startswith(_OWN_ID) else answer for answer in answers]
            return {"role": "user", "parts": [answer.to_wire(Provider.GEMINI) for answer in named]}


_OWN_ID = "call-"
"""Marks the ids that we give to calls of models that give none."""


def _reply(parts: list[dict[str, Any]], usage: TokenUsage, finish: str, request: ModelRequest) -> ModelReply:
    found = parse_calls("gemini", parts, [spec.name for spec in request.tools])
    calls = tuple(call if call.id else replace(call, id=f"{_OWN_ID}{number}") for number, call in enumerate(found))
    message = AssistantMessage(
        text="".join(part["text"] for part in parts if part.get("text") and not part.get("thought")),
        calls=calls,
        provider="gemini",
        raw=parts or None,
    )
    return ModelReply(message=message, usage=usage, cut=finish == "MAX_TOKENS")


def _usage(data: Any) -> TokenUsage | None:
    if not isinstance(data, dict):
        return None
    written = data.get("candidatesTokenCount", 0) + data.get("thoughtsTokenCount", 0)
    return TokenUsage(
        input=data.get("promptTokenCount", 0), output=written, cache_read=data.get("cachedContentTokenCount", 0)
    )
