from typing import Any

import pytest

from toolreeve.core.mcp import PeerError
from toolreeve.rpc.errors import INTERNAL_ERROR
from toolreeve.rpc.messages import encode, encode_line, error_response, notification, read_error, request, response


def test_messages_are_built_as_json_rpc_has_them() -> None:
    assert request(1, "ping", None) == {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert request("a", "ping", {}) == {"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {}}
    assert notification("changed", {"a": 1}) == {"jsonrpc": "2.0", "method": "changed", "params": {"a": 1}}
    assert response(1, {}) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert error_response(None, PeerError(-1, "no")) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "no"},
    }


def test_a_line_is_the_message_and_a_newline() -> None:
    assert encode_line({"a": "\n"}) == encode({"a": "\n"}) + b"\n" == b'{"a":"\\n"}\n'


@pytest.mark.parametrize("encoder", [encode, encode_line])
def test_what_is_not_json_is_refused(encoder: Any) -> None:
    with pytest.raises(ValueError, match="JSON serializable"):
        encoder({"a": object()})


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        ({"code": 7, "message": "no", "data": [1]}, (7, "no", [1])),
        ({"code": True, "message": None}, (INTERNAL_ERROR, "why", None)),
        ({}, (INTERNAL_ERROR, "why", None)),
        ("text", (INTERNAL_ERROR, "why", None)),
        (None, (INTERNAL_ERROR, "why", None)),
    ],
)
def test_an_error_is_read_however_malformed(error: Any, fields: tuple[int, str, Any]) -> None:
    assert read_error(error, "why") == fields


def test_integers_of_any_size_are_encoded_exactly() -> None:
    assert encode({"a": 1 << 70}) == b'{"a":1180591620717411303424}'
