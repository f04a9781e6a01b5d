"""Anthropic Messages, with prompt, tools and conversation marked for its cache."""

from typing import Any

import anthropic

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
from toolreeve.agent.providers.sdk_body import untyped
from toolreeve.agent.providers.sdk_errors import broke_off, translated
from toolreeve.formats import parse_calls, tools_for
from toolreeve.formats.names import Provider, wire_name

_MAX_TOKENS = 8192
"""The API requires a limit; this is for a configuration without one."""
_CACHE = {"type": "ephemeral"}


class Anthropic:
    name = "anthropic"

    def __init__(self, client: anthropic.AsyncAnthropic) -> None:
        self._client = client

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        with translated(self.name, anthropic):
            async with self._client.messages.stream(**untyped(_body(request), "messages", "tools", "system")) as stream:
                async for event in stream:
                    if event.type == "text":
                        on_text(event.text)
                final = await stream.get_final_message()
        if final.stop_reason is None:
            raise broke_off(self.name)
        return _reply(final, request)

    async def close(self) -> None:
        await self._client.close()


def connect(_: str, *, api_key: str, base_url: str | None, timeout: float) -> Anthropic:
    return Anthropic(anthropic.AsyncAnthropic(api_key=api_key, base_url=base_url, timeout=timeout, max_retries=0))


def _body(request: ModelRequest) -> dict[str, Any]:
    messages = [_wire(message) for message in request.messages]
    last = messages[-1]["content"][-1]
    messages[-1]["content"][-1] = {**last, "cache_control": _CACHE}
    body: dict[str, Any] = {
        "model": request.model,
        "messages": messages,
        "max_tokens": request.max_tokens or _MAX_TOKENS,
    }
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]
    if request.tools:
        body["tools"] = tools_for("anthropic", request.tools)
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return body


def _wire(message: Message) -> dict[str, Any]:
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case AssistantMessage(provider="anthropic", raw=list(sent)):
            return {"role": "assistant", "content": list(sent)}
        case AssistantMessage(text=text, calls=calls):
            blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
            for call in calls:
                name = wire_name(Provider.ANTHROPIC, call.name)
                arguments = call.args if isinstance(call.args, dict) else {}
                blocks.append({"type": "tool_use", "id": call.id, "name": name, "input": arguments})
            return {"role": "assistant", "content": blocks or [{"type": "text", "text": "(nothing)"}]}
        case ToolMessage(answers=answers):
            return {"role": "user", "content": [answer.to_wire(Provider.ANTHROPIC) for answer in answers]}


def _reply(final: Any, request: ModelRequest) -> ModelReply:
    blocks = [block.to_dict() for block in final.content]
    usage = final.usage
    read = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    message = AssistantMessage(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        calls=tuple(parse_calls("anthropic", blocks, [spec.name for spec in request.tools])),
        provider="anthropic",
        raw=blocks or None,
    )
    return ModelReply(
        message=message,
        usage=TokenUsage(
            input=usage.input_tokens + read + written,
            output=usage.output_tokens,
            cache_read=read,
            cache_write=written,
        ),
        cut=final.stop_reason == "max_tokens",
    )
