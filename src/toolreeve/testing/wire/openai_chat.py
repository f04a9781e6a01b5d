"""OpenAI Chat Completions, as a server."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolreeve.testing.script import Turn
from toolreeve.testing.wire.format import (
    RequestRejected,
    arguments,
    event,
    openai_error,
    pieces,
    require_answers,
    require_header,
    require_known,
    require_name,
    require_object,
)

_KNOWN = (
    "model messages tools tool_choice parallel_tool_calls stream stream_options temperature top_p max_tokens "
    "max_completion_tokens response_format stop seed user metadata store reasoning_effort"
).split()
MAX_TOOLS = 128


class OpenAIChatFormat:
    def check(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        require_header(headers, "authorization", "Bearer ")
        require_known(body, _KNOWN)
        if not isinstance(body.get("model"), str) or not body.get("messages"):
            raise RequestRejected("model and messages are required")
        if len(body.get("tools", ())) > MAX_TOOLS:
            raise RequestRejected(f"Invalid 'tools': array too long. Expected at most {MAX_TOOLS}.")
        for tool in body.get("tools", ()):
            require_name(tool["function"]["name"], 64)
            require_object(tool["function"].get("parameters", {"type": "object"}), tool["function"]["name"])
        _check_messages(body["messages"])

    def events(self, turn: Turn, model: str) -> Iterator[str]:
        def chunk(delta: Mapping[str, Any], finish: str | None = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return event(_envelope(model) | {"choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        for text in pieces(turn.text):
            yield chunk({"content": text})
        if turn.breaks_off:
            return
        for index, call in enumerate(turn.calls):
            named = {"name": call.name, "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": named}]})
            for piece in pieces(arguments(call)):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield chunk({}, _finish(turn))
        yield event(_envelope(model) | {"choices": [], "usage": _usage(turn)})
        yield event("[DONE]")

    def reply(self, turn: Turn, model: str) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
        if turn.calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments(call)}}
                for call in turn.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": _finish(turn), "logprobs": None}
        whole = {"object": "chat.completion", "choices": [choice], "usage": _usage(turn)}
        return _envelope(model) | whole

    def error(self, status: int, message: str) -> dict[str, Any]:
        return openai_error(status, message)


def _finish(turn: Turn) -> str:
    if turn.cut:
        return "length"
    if turn.refuses:
        return "content_filter"
    return "tool_calls" if turn.calls else "stop"


def _usage(turn: Turn) -> dict[str, Any]:
    return {
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": turn.output_tokens,
        "total_tokens": turn.input_tokens + turn.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _envelope(model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1, "model": model}


def _check_messages(messages: list[Mapping[str, Any]]) -> None:
    """Calls must be answered, all of them, right after the message that made them."""
    waiting: list[str] = []
    answered: list[str] = []
    for message in messages:
        match message.get("role"):
            case "tool":
                answered.append(message["tool_call_id"])
                if not isinstance(message.get("content"), str | list):
                    raise RequestRejected("a tool message needs content")
                continue
            case "system" | "developer" | "user":
                if not message.get("content"):
                    raise RequestRejected(f"a {message['role']} message needs content")
            case "assistant":
                if not message.get("content") and not message.get("tool_calls"):
                    raise RequestRejected("an assistant message needs content or tool_calls")
            case other:
                raise RequestRejected(f"Invalid value: {other!r} for role")
        require_answers(waiting, answered)
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        answered = []
        for call in message.get("tool_calls") or ():
            require_name(call["function"]["name"], 64)
            if not isinstance(call["function"]["arguments"], str):
                raise RequestRejected("arguments must be a string")
    require_answers(waiting, answered)
    if messages[-1].get("role") == "assistant":
        raise RequestRejected("the last message must not be the assistant's")
