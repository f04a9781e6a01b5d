"""OpenAI Chat Completions, also as Ollama, vLLM and others serve it."""

from dataclasses import dataclass, field
from typing import Any

import openai

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
from toolreeve.formats import ParsedCall, parse_calls, tools_for
from toolreeve.formats.names import Provider, wire_name

MAX_TOOLS = 128


class OpenAIChat:
    def __init__(self, name: str, client: openai.AsyncOpenAI) -> None:
        self.name = name
        self._client = client

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        with translated(self.name, openai):
            stream = await self._client.chat.completions.create(**untyped(self._body(request), "messages", "tools"))
            reply = _Accumulator(on_text)
            async for chunk in stream:
                reply.add(chunk)
            return reply.finish(self.name, request)

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        system: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [*system, *(each for message in request.messages for each in _wire(message))],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = tools_for("openai", request.tools[:MAX_TOOLS])
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            # The servers that only speak the same format know the older name.
            body["max_completion_tokens" if self.name == "openai" else "max_tokens"] = request.max_tokens
        return body

    async def close(self) -> None:
        await self._client.close()


def connect(name: str, *, api_key: str, base_url: str | None, timeout: float) -> OpenAIChat:
    http = new_http_client(timeout=timeout)
    return OpenAIChat(name, openai.AsyncOpenAI(api_key=api_key, base_url=base_url, http_client=http, max_retries=0))


def _wire(message: Message) -> list[dict[str, Any]]:
    match message:
        case UserMessage(text=text):
            return [{"role": "user", "content": text}]
        case AssistantMessage(text=text, calls=calls):
            wire: dict[str, Any] = {"role": "assistant", "content": text or None}
            if calls:
                wire["tool_calls"] = [_wire_call(call) for call in calls]
            return [wire]
        case ToolMessage(answers=answers):
            return [answer.to_wire(Provider.OPENAI) for answer in answers]


def _wire_call(call: ParsedCall) -> dict[str, Any]:
    arguments = call.args if isinstance(call.args, str) else json.dumps(call.args).decode()
    name = wire_name(Provider.OPENAI, call.name)
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": arguments}}


class _Accumulator:
    """Joins the chunks of a stream. Arguments arrive in pieces, by the index of their call."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, _StreamedCall] = {}
        self._usage = TokenUsage()
        self._finish = ""

    def add(self, chunk: Any) -> None:
        if chunk.usage is not None:
            details = chunk.usage.prompt_tokens_details
            self._usage = TokenUsage(
                input=chunk.usage.prompt_tokens or 0,
                output=chunk.usage.completion_tokens or 0,
                cache_read=(details.cached_tokens or 0) if details is not None else 0,
            )
        for choice in (chunk.choices or ())[:1]:
            self._finish = choice.finish_reason or self._finish
            if choice.delta is not None:
                self._add_delta(choice.delta)

    def _add_delta(self, delta: Any) -> None:
        if delta.content:
            self._text.append(delta.content)
            self._on_text(delta.content)
        if refusal := getattr(delta, "refusal", None):
            self._refusal.append(refusal)
        for piece in delta.tool_calls or ():
            call = self._calls.setdefault(piece.index, _StreamedCall())
            call.id = call.id or piece.id or ""
            if piece.function is not None:
                call.name += piece.function.name or ""
                call.arguments.append(piece.function.arguments or "")

    def finish(self, provider: str, request: ModelRequest) -> ModelReply:
        if not self._finish:
            raise broke_off(provider)
        if self._refusal or self._finish == "content_filter":
            raise refused(provider, "".join(self._refusal) or self._finish)
        written = [call.to_dict(number) for number, call in enumerate(self._calls.values())]
        calls = parse_calls("openai", {"tool_calls": written}, [spec.name for spec in request.tools])
        message = AssistantMessage(text="".join(self._text), calls=tuple(calls), provider=provider)
        return ModelReply(message=message, usage=self._usage, cut=self._finish == "length")


@dataclass(slots=True)
class _StreamedCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def to_dict(self, number: int) -> dict[str, Any]:
        """Some servers give no ids."""
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.id or f"call-{number}", "function": function}
