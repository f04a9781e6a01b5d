"""Anthropic Messages, as a server."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolreeve.testing.script import Turn
from toolreeve.testing.wire.format import (
    RequestRejected,
    arguments,
    event,
    pieces,
    require_answers,
    require_header,
    require_known,
    require_name,
    require_object,
)

_KNOWN = (
    "model messages max_tokens system tools tool_choice stream temperature top_p top_k stop_sequences metadata "
    "thinking service_tier output_config context_management container mcp_servers"
).split()
_MOST_CACHE_MARKS = 4
_KINDS = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class AnthropicFormat:
    def check(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        if "x-api-key" not in headers:  # newer clients send the key as a bearer token
            require_header(headers, "authorization", "Bearer ")
        require_header(headers, "anthropic-version")
        require_known(body, _KNOWN)
        for name in ("model", "max_tokens", "messages"):
            if not body.get(name):
                raise RequestRejected(f"{name}: Field required")
        for tool in body.get("tools", ()):
            require_name(tool.get("name"), 128)
            require_object(tool.get("input_schema"), tool["name"])
        if str(body).count("cache_control") > _MOST_CACHE_MARKS:
            raise RequestRejected("A maximum of 4 blocks with cache_control may be provided.")
        allows_system = "per-turn-control" in headers.get("anthropic-beta", "")
        _check_messages([each for each in body["messages"] if not (allows_system and each.get("role") == "system")])

    def events(self, turn: Turn, model: str) -> Iterator[str]:
        message = _message(turn, model, content=[], stop=None, written=1)
        yield _event("message_start", message=message)
        if turn.text:
            yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for text in pieces(turn.text):
                yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
            if turn.breaks_off:
                return
            yield _event("content_block_stop", index=0)
        for index, call in enumerate(turn.calls, 1 if turn.text else 0):
            block = {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": {}}
            yield _event("content_block_start", index=index, content_block=block)
            for piece in pieces(arguments(call)):
                yield _event(
                    "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece}
                )
            yield _event("content_block_stop", index=index)
        delta = {"stop_reason": _stop(turn), "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": turn.output_tokens})
        yield _event("message_stop")

    def reply(self, turn: Turn, model: str) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
        for call in turn.calls:
            content.append({"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": dict(call.args)})
        return _message(turn, model, content=content, stop=_stop(turn), written=turn.output_tokens)

    def error(self, status: int, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": _KINDS.get(status, "api_error"), "message": message}}


def _message(
    turn: Turn, model: str, *, content: list[dict[str, Any]], stop: str | None, written: int
) -> dict[str, Any]:
    return {
        "id": f"msg_scripted_{turn.number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": turn.input_tokens, "output_tokens": written},
    }


def _stop(turn: Turn) -> str:
    if turn.cut:
        return "max_tokens"
    if turn.refuses:
        return "refusal"
    return "tool_use" if turn.calls else "end_turn"


def _event(kind: str, **data: Any) -> str:
    return event({"type": kind, **data}, kind)


def _check_messages(messages: list[Mapping[str, Any]]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message.get("role") not in ("user", "assistant"):
            raise RequestRejected(f"messages: unexpected role {message.get('role')!r}")
        blocks = message["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        if not blocks or any(block.get("type") == "text" and not block.get("text") for block in blocks):
            raise RequestRejected("messages: text content blocks must be non-empty")
        require_answers(waiting, [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"])
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if messages[-1]["role"] != "user" or waiting:
        raise RequestRejected("the conversation must end with a user message")
