"""OpenAI Responses: nothing stored there, reasoning sent along encrypted."""

from typing import Any

import openai

from toolreeve.agent.errors import ModelError, ModelErrorKind
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
from toolreeve.agent.providers.openai_chat import MAX_TOOLS
from toolreeve.agent.providers.sdk import broke_off, new_http_client, refused, translated, untyped
from toolreeve.core import json
from toolreeve.formats import ParsedCall, parse_calls, tools_for
from toolreeve.formats.names import Provider, wire_name


class OpenAIResponses:
    name = "openai_responses"

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        final: Any = None
        with translated(self.name, openai):
            async for event in await self._client.responses.create(**untyped(_body(request), "input", "tools")):
                match event.type:
                    case "response.output_text.delta":
                        on_text(event.delta)
                    case "response.refusal.done":
                        raise refused(self.name, event.refusal)
                    case "response.completed" | "response.incomplete":
                        final = event.response
                    case "response.failed" | "error":
                        raise _failure(event)
            if final is None:
                raise broke_off(self.name)
            return _reply(final, request)

    async def close(self) -> None:
        await self._client.close()


def connect(_: str, *, api_key: str, base_url: str | None, timeout: float) -> OpenAIResponses:
    http = new_http_client(timeout=timeout)
    return OpenAIResponses(openai.AsyncOpenAI(api_key=api_key, base_url=base_url, http_client=http, max_retries=0))


def _body(request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in request.messages for item in _wire(message)],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        # Tools without `strict` are made strict by this API, which refuses optional parameters.
        declared = tools_for("openai_responses", request.tools[:MAX_TOOLS])
        body["tools"] = [{**tool, "strict": False} for tool in declared]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    return body


def _wire(message: Message) -> list[dict[str, Any]]:
    match message:
        case UserMessage(text=text):
            return [{"role": "user", "content": text}]
        case AssistantMessage(provider="openai_responses", raw=list(items)):
            return list(items)
        case AssistantMessage(text=text, calls=calls):
            said: list[dict[str, Any]] = [{"role": "assistant", "content": text}] if text else []
            return [*said, *(_wire_call(call) for call in calls)]
        case ToolMessage(answers=answers):
            return [answer.to_wire(Provider.OPENAI_RESPONSES) for answer in answers]


def _wire_call(call: ParsedCall) -> dict[str, Any]:
    arguments = call.args if isinstance(call.args, str) else json.dumps(call.args).decode()
    name = wire_name(Provider.OPENAI_RESPONSES, call.name)
    return {"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments}


def _reply(final: Any, request: ModelRequest) -> ModelReply:
    details = final.incomplete_details
    if details is not None and details.reason == "content_filter":
        raise refused("openai_responses", details.reason)
    items = [item.to_dict() for item in final.output]
    for item in items:
        item.pop("status", None)
    usage = final.usage
    cached = None if usage is None else usage.input_tokens_details
    message = AssistantMessage(
        text=final.output_text,
        calls=tuple(parse_calls("openai_responses", {"output": items}, [spec.name for spec in request.tools])),
        provider="openai_responses",
        raw=items or None,
    )
    return ModelReply(
        message=message,
        usage=TokenUsage(
            input=0 if usage is None else usage.input_tokens,
            output=0 if usage is None else usage.output_tokens,
            cache_read=0 if cached is None else cached.cached_tokens or 0,
        ),
        cut=final.status == "incomplete",
    )


def _failure(event: Any) -> ModelError:
    error = event.response.error if event.type == "response.failed" else event
    code = str(getattr(error, "code", "") or "")
    kind = ModelErrorKind.UNAVAILABLE
    if code == "context_length_exceeded":
        kind = ModelErrorKind.CONTEXT
    elif code == "rate_limit_exceeded":
        kind = ModelErrorKind.RATE_LIMIT
    return ModelError(kind, f"openai_responses: {getattr(error, 'message', '') or code}")
