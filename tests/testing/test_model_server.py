"""The scripted model refuses what the real APIs refuse."""

from typing import Any

import httpx2
import pytest

from toolreeve.testing import ScriptedModel, say

KEYS = {
    "openai": {"authorization": "Bearer k"},
    "anthropic": {"x-api-key": "k", "anthropic-version": "2023-06-01"},
    "gemini": {"x-goog-api-key": "k"},
}
PATHS = {
    "openai": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/m:streamGenerateContent",
}
USER = {"role": "user", "content": "hi"}
CALLED = {
    "role": "assistant",
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}


def post(provider: str, body: dict[str, Any], *, key: bool = True) -> httpx2.Response:
    with ScriptedModel([say("hello")]) as model:
        url = f"http://127.0.0.1:{model.port}{PATHS[provider]}"
        return httpx2.post(url, json=body, headers=KEYS[provider] if key else {})


@pytest.mark.parametrize(
    ("provider", "body", "message"),
    [
        ("openai", {"model": "m", "messages": []}, "required"),
        ("openai", {"model": "m", "messages": [USER], "topp": 1}, "Unknown parameter: 'topp'"),
        ("openai", {"model": "m", "messages": [USER, CALLED]}, "without a result"),
        ("openai", {"model": "m", "messages": [USER, {"role": "tool", "tool_call_id": "a", "content": ""}]}, "without"),
        (
            "openai",
            {"model": "m", "messages": [USER], "tools": [{"function": {"name": "a b", "parameters": {}}}]},
            "Invalid tool name",
        ),
        ("anthropic", {"model": "m", "messages": [USER]}, "max_tokens"),
        (
            "anthropic",
            {
                "model": "m",
                "max_tokens": 9,
                "messages": [
                    USER,
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
                    {"role": "user", "content": "no result"},
                ],
            },
            "without a result",
        ),
        (
            "gemini",
            {
                "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
                "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT", "$ref": "#/x"}}]}],
            },
            "$ref",
        ),
        ("gemini", {"contents": [{"role": "assistant", "parts": [{"text": "hi"}]}]}, "role"),
    ],
)
def test_a_bad_request_is_refused_with_the_reason(provider: str, body: dict[str, Any], message: str) -> None:
    response = post(provider, body)

    assert response.status_code == 400
    assert message in str(response.json()["error"])


@pytest.mark.parametrize("provider", PATHS)
def test_a_request_without_a_key_is_refused(provider: str) -> None:
    assert post(provider, {"model": "m", "messages": [USER]}, key=False).status_code == 401
