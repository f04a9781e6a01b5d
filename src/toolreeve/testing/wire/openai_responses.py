"""OpenAI Responses, as a server."""

from collections.abc import Iterator, Mapping
from typing import Any

from toolreeve.testing.script import ScriptedCall, Turn
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
    "model input instructions tools tool_choice parallel_tool_calls stream store include temperature top_p "
    "max_output_tokens reasoning text metadata previous_response_id truncation user "
    "client_metadata prompt_cache_key prompt_cache_retention safety_identifier service_tier background conversation "
    "max_tool_calls prompt stream_options top_logprobs"
).split()


class OpenAIResponsesFormat:
    def check(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        require_header(headers, "authorization", "Bearer ")
        require_known(body, _KNOWN)
        if not isinstance(body.get("model"), str) or not body.get("input"):
            raise RequestRejected("model and input are required")
        for tool in body.get("tools", ()):
            _check_tool(tool)
        called = [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]
        answered = [item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"]
        require_answers(called, answered)

    def events(self, turn: Turn, model: str) -> Iterator[str]:
        numbers = iter(range(1_000_000))

        def send(kind: str, **data: Any) -> str:
            return event({"type": kind, "sequence_number": next(numbers), **data}, kind)

        yield send("response.created", response=_response(model, "in_progress", [], turn))
        output: list[dict[str, Any]] = []
        if turn.text:
            item = _said(turn)
            empty = {**item, "status": "in_progress", "content": []}
            yield send("response.output_item.added", output_index=0, item=empty)
            for text in pieces(turn.text):
                yield send(
                    "response.output_text.delta",
                    item_id=item["id"],
                    output_index=0,
                    content_index=0,
                    delta=text,
                    logprobs=[],
                )
            if turn.breaks_off:
                return
            output.append(item)
            yield send("response.output_item.done", output_index=0, item=item)
        for call in turn.calls:
            item = _called(call)
            yield send("response.output_item.added", output_index=len(output), item={**item, "arguments": ""})
            yield send("response.output_item.done", output_index=len(output), item=item)
            output.append(item)
        status = _status(turn)
        yield send(f"response.{status}", response=_response(model, status, output, turn))

    def reply(self, turn: Turn, model: str) -> dict[str, Any]:
        said = [_said(turn)] if turn.text else []
        return _response(model, _status(turn), [*said, *map(_called, turn.calls)], turn)

    def error(self, status: int, message: str) -> dict[str, Any]:
        return openai_error(status, message)


def _status(turn: Turn) -> str:
    return "incomplete" if turn.cut or turn.refuses else "completed"


def _said(turn: Turn) -> dict[str, Any]:
    content = {"type": "output_text", "text": turn.text, "annotations": []}
    return {
        "id": f"msg_scripted_{turn.number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }


def _called(call: ScriptedCall) -> dict[str, Any]:
    """A tool of a namespace is scripted as `namespace.name`."""
    namespace, _, name = call.name.rpartition(".")
    item = {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "call_id": call.id,
        "name": name,
        "arguments": arguments(call),
        "status": "completed",
    }
    return item | ({"namespace": namespace} if namespace else {})


def _response(model: str, status: str, output: list[dict[str, Any]], turn: Turn) -> dict[str, Any]:
    reason = "content_filter" if turn.refuses else "max_output_tokens"
    usage = {
        "input_tokens": turn.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": turn.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": turn.input_tokens + turn.output_tokens,
    }
    return {
        "id": f"resp_scripted_{turn.number}",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": status,
        "output": output,
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": {"reason": reason} if status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }


def _check_tool(tool: Mapping[str, Any]) -> None:
    """Only functions have a schema; the provider's own tools (`web_search`, `custom` …) are taken as they are."""
    match tool["type"]:
        case "namespace":
            for each in tool["tools"]:
                _check_tool(each)
        case "function":
            require_name(tool["name"], 64)
            require_object(tool.get("parameters"), tool["name"])
            if tool.get("strict", True):
                _check_strict(tool["parameters"], tool["name"])


def _check_strict(schema: Mapping[str, Any], where: str) -> None:
    properties = schema.get("properties", {})
    if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
        raise RequestRejected(f"Invalid schema for function {where!r}: strict needs every property in 'required'")
