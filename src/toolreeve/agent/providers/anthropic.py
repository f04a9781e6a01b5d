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
from toolreeve.agent.providers.sdk import broke_off, new_http_client, refused, translated, untyped
from toolreeve.core import json
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
        reply = _Accumulator(on_text)
        with translated(self.name, anthropic):
            body = untyped(_body(request), "messages", "tools", "system")
            async with await self._client.messages.create(**body, stream=True) as stream:
                async for event in stream:
                    reply.add(event)
            return reply.finish(request)

    async def close(self) -> None:
        await self._client.close()


def connect(_: str, *, api_key: str, base_url: str | None, timeout: float) -> Anthropic:
    http = new_http_client(timeout=timeout)
    return Anthropic(anthropic.AsyncAnthropic(api_key=api_key, base_url=base_url, http_client=http, max_retries=0))


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


class _Accumulator:
    """Joins the events of a stream. The SDK's own parses the arguments of a call again with every piece."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._blocks: list[dict[str, Any]] = []
        self._pieces: list[list[str]] = []
        self._usage: dict[str, int] = {}
        self._stop = ""

    def add(self, event: Any) -> None:
        match event.type:
            case "message_start":
                self._count(event.message.usage)
            case "content_block_start":
                self._blocks.append(event.content_block.to_dict())
                self._pieces.append([])
            case "content_block_delta":
                self._extend(event.index, event.delta)
            case "message_delta":
                self._stop = event.delta.stop_reason or self._stop
                self._count(event.usage)

    def _extend(self, index: int, delta: Any) -> None:
        match delta.type:
            case "text_delta":
                self._pieces[index].append(delta.text)
                self._on_text(delta.text)
            case "thinking_delta":
                self._pieces[index].append(delta.thinking)
            case "input_json_delta":
                self._pieces[index].append(delta.partial_json)
            case "signature_delta":
                self._blocks[index]["signature"] = delta.signature

    def _count(self, usage: Any) -> None:
        """Later counts include earlier ones; those that are left out still hold."""
        for name in ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"):
            found = getattr(usage, name, None)
            if found is not None:
                self._usage[name] = found

    def finish(self, request: ModelRequest) -> ModelReply:
        if not self._stop:
            raise broke_off("anthropic")
        called = self._join()
        text = "".join(block["text"] for block in self._blocks if block["type"] == "text")
        if self._stop == "refusal":
            raise refused("anthropic", text)
        calls = parse_calls("anthropic", called, [spec.name for spec in request.tools])
        message = AssistantMessage(text=text, calls=tuple(calls), provider="anthropic", raw=self._blocks or None)
        read = self._usage.get("cache_read_input_tokens", 0)
        written = self._usage.get("cache_creation_input_tokens", 0)
        usage = TokenUsage(
            input=self._usage.get("input_tokens", 0) + read + written,
            output=self._usage.get("output_tokens", 0),
            cache_read=read,
            cache_write=written,
        )
        return ModelReply(message=message, usage=usage, cut=self._stop == "max_tokens")

    def _join(self) -> list[dict[str, Any]]:
        """Completes the blocks. Returns the calls with their arguments as the model wrote them; the blocks, which are
        sent back, have an object in any case, because the API refuses everything else."""
        called = []
        for block, pieces in zip(self._blocks, self._pieces, strict=True):
            joined = "".join(pieces)
            if block["type"] in ("text", "thinking"):
                block[block["type"]] += joined
            elif block["type"] == "tool_use":
                called.append({**block, "input": joined})
                block["input"] = _read_object(joined)
        return called


def _read_object(arguments: str) -> dict[str, Any]:
    try:
        found = json.loads(arguments)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
