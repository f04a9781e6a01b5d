"""The scripted model refuses what the real APIs refuse."""

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from toolreeve.testing import ScriptedModel, Turn, call, say

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


def test_a_turn_can_be_made_from_the_request_and_asides_take_none() -> None:
    def echo(body: Mapping[str, Any]) -> Turn:
        return say(f"you said {body['messages'][-1]['content']}")

    with ScriptedModel([echo], only=lambda body: "title" not in str(body)) as model:
        url = f"http://127.0.0.1:{model.port}{PATHS['openai']}"

        def reply(content: str) -> str:
            body = {"model": "m", "messages": [{"role": "user", "content": content}]}
            message = httpx2.post(url, json=body, headers=KEYS["openai"]).json()["choices"][0]["message"]
            return str(message["content"])

        replies = [reply("a title please"), reply("hi")]

    assert replies == ["ok", "you said hi"]
    assert len(model.requests) == 1


def test_calls_have_ids_of_their_own_and_may_name_a_namespace() -> None:
    turns = [call("space.read", path="a") | call("plain"), call("plain")]
    with ScriptedModel(turns) as model:
        url = f"http://127.0.0.1:{model.port}/v1/responses"
        body = {"model": "m", "input": [USER], "tools": [{"type": "namespace", "name": "space", "tools": []}]}
        outputs = [httpx2.post(url, json=body, headers=KEYS["openai"]).json()["output"] for _ in turns]

    items = [item for output in outputs for item in output]
    assert len({item["call_id"] for item in items}) == 3
    assert [(item.get("namespace"), item["name"]) for item in items[:2]] == [("space", "read"), (None, "plain")]
