"""Builds, encodes and reads JSON-RPC messages, as plain dicts."""

from collections.abc import Mapping
from typing import Any

import orjson

from toolreeve.core import json
from toolreeve.core.mcp import RpcError
from toolreeve.rpc.errors import INTERNAL_ERROR

Id = int | str
Message = dict[str, Any]


def request(request_id: Id, method: str, params: Mapping[str, Any] | None) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def notification(method: str, params: Mapping[str, Any] | None) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def response(request_id: Id, result: Mapping[str, Any]) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_response(request_id: Id | None, error: RpcError) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "error": error.to_dict()}


def encode(message: Mapping[str, Any]) -> bytes:
    """Raises ValueError for what is not JSON."""
    try:
        return json.dumps(message)
    except TypeError as problem:
        raise ValueError(str(problem)) from None


def encode_line(message: Mapping[str, Any]) -> bytes:
    """With a newline. Raises ValueError for what is not JSON, and for what orjson refuses: integers beyond 64 bits and
    lone surrogates."""
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as problem:
        raise ValueError(str(problem)) from None


def read_error(error: Any, default: str) -> tuple[int, str, Any]:
    """Code, message and data of an `error` member, however malformed; `default` is for a missing message."""
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    message = fields.get("message")
    return (
        code if type(code) is int else INTERNAL_ERROR,
        message if isinstance(message, str) else default,
        fields.get("data"),
    )
