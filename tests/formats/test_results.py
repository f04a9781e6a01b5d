from typing import Any

import pytest

from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import Failure, Meta, Success, new_result
from toolreeve.formats import format_result, format_results, parse_calls

META = Meta(call_id="1", tool="fs/read", session="s")
DONE = new_result(Success({"content": "hello"}, "hello"), META)
FAILED = new_result(Failure(ErrorCode.FILE_NOT_FOUND, "no such file", ("b.txt",)), META)
TOLD = "Error [E_FILE_NOT_FOUND]: no such file\nSuggestions:\n  - b.txt"


@pytest.mark.parametrize(
    ("provider", "done", "failed"),
    [
        (
            "openai",
            {"role": "tool", "tool_call_id": "c1", "content": "hello"},
            {"role": "tool", "tool_call_id": "c1", "content": TOLD},
        ),
        (
            "openai_responses",
            {"type": "function_call_output", "call_id": "c1", "output": "hello"},
            {"type": "function_call_output", "call_id": "c1", "output": TOLD},
        ),
        (
            "anthropic",
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "hello", "is_error": False}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "c1", "content": TOLD, "is_error": True}],
            },
        ),
        (
            "ollama",
            {"role": "tool", "tool_name": "fs_0x2f_read", "content": "hello"},
            {"role": "tool", "tool_name": "fs_0x2f_read", "content": TOLD},
        ),
        (
            "gemini",
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "fs_0x2f_read", "response": {"output": "hello"}}}],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "fs_0x2f_read", "response": {"error": TOLD}}}],
            },
        ),
        ("mcp", DONE.to_mcp(), FAILED.to_mcp()),
    ],
)
def test_an_answer_has_the_shape_its_provider_expects(
    provider: str, done: dict[str, Any], failed: dict[str, Any]
) -> None:
    assert format_result(provider, "c1", DONE) == done
    assert format_result(provider, "c1", FAILED) == failed


def test_providers_that_want_all_answers_in_one_message_get_one() -> None:
    answers = [("c1", DONE), ("c2", FAILED)]

    (anthropic,) = format_results("anthropic", answers)
    (gemini,) = format_results("gemini", answers)

    assert [part["tool_use_id"] for part in anthropic["content"]] == ["c1", "c2"]
    assert [part["functionResponse"]["id"] for part in gemini["parts"]] == ["c1", "c2"]
    assert [message["tool_call_id"] for message in format_results("openai", answers)] == ["c1", "c2"]


def test_no_answers_are_no_messages() -> None:
    assert format_results("anthropic", []) == format_results("gemini", []) == format_results("openai", []) == []


def test_a_call_without_an_id_is_answered_by_name_alone() -> None:
    (call,) = parse_calls("gemini", {"parts": [{"functionCall": {"name": "ls", "args": {}}}]})

    answer = format_result("gemini", call.id, DONE, name=call.name)

    assert answer["parts"] == [{"functionResponse": {"name": "ls", "response": {"output": "hello"}}}]
