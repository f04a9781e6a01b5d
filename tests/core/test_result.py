"""The four views of a result, each exact."""

import json
from typing import Any

from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import Failure, Meta, Success, ToolResult, new_result
from toolreeve.core.verdict import Decision, Verdict

ALLOWED = Verdict(Decision.ALLOW, layer="mode", reason="safe")
NINE = {"success", "output", "stdout", "stderr", "exit_code", "content", "error", "isError", "structured_content"}


def meta(**changes: Any) -> Meta:
    return Meta(call_id="c1", tool="read_file", session="s1", verdict=ALLOWED, attempts=1, **changes)


def read() -> ToolResult:
    return new_result(Success({"content": "hello", "size": 5}, "hello"), meta())


def missing() -> ToolResult:
    failure = Failure(ErrorCode.FILE_NOT_FOUND, "File not found: a.txt", ("b.txt", "c/a.txt"))
    return new_result(failure, meta())


def test_to_dict_of_a_success_is_the_documented_object() -> None:
    assert read().to_dict() == {
        "success": True,
        "data": {"content": "hello", "size": 5},
        "error": None,
        "meta": {
            "call_id": "c1",
            "tool": "read_file",
            "session": "s1",
            "duration_ms": 0.0,
            "sandbox": "none",
            "decision": {"effect": "allow", "layer": "mode", "rule": None, "reason": "safe"},
            "attempts": 1,
            "cached": False,
            "truncated": False,
            "labels": [],
        },
    }


def test_to_dict_of_a_failure_says_all_six_things_about_the_error() -> None:
    shown = missing().to_dict()

    assert (shown["success"], shown["data"]) == (False, None)
    assert shown["error"] == {
        "code": "E_FILE_NOT_FOUND",
        "message": "File not found: a.txt",
        "recoverable": True,
        "retryable": False,
        "suggestions": ["b.txt", "c/a.txt"],
        "detail": None,
    }


def test_optional_meta_appears_only_when_there_is_something_to_say() -> None:
    result = new_result(Success({}), meta(command="ls", approved_by="ann", auto_recovery=True))

    shown = result.to_dict()["meta"]

    assert (shown["command"], shown["approved_by"], shown["auto_recovery"]) == ("ls", "ann", True)


def test_to_flat_always_has_nine_fields_and_the_data_beside_them() -> None:
    assert read().to_flat() == {
        "success": True,
        "output": "hello",
        "stdout": "",
        "stderr": "",
        "exit_code": 0,
        "content": "hello",
        "error": "",
        "isError": False,
        "structured_content": {"content": "hello", "size": 5},
        "size": 5,
    }
    assert missing().to_flat().keys() >= NINE


def test_to_flat_of_a_failure_carries_the_message_and_a_non_zero_exit_code() -> None:
    flat = missing().to_flat()

    assert (flat["success"], flat["isError"], flat["error"], flat["exit_code"]) == (
        False,
        True,
        "File not found: a.txt",
        1,
    )


def test_to_flat_keeps_what_a_failed_command_printed() -> None:
    failure = Failure(ErrorCode.TOOL_EXEC, "exit 2", data={"stdout": "out", "stderr": "err", "exit_code": 2})

    flat = new_result(failure, meta()).to_flat()

    assert (flat["stdout"], flat["stderr"], flat["exit_code"], flat["output"]) == ("out", "err", 2, "out")


def test_a_tool_cannot_claim_success_in_its_data_where_the_call_failed() -> None:
    failure = Failure(ErrorCode.HTTP_ERROR, "500", data={"success": True, "isError": False, "error": None})

    flat = new_result(failure, meta()).to_flat()

    assert (flat["success"], flat["isError"], flat["error"]) == (False, True, "500")


def test_to_text_of_a_failure_lists_the_suggestions() -> None:
    assert (
        missing().to_text() == "Error [E_FILE_NOT_FOUND]: File not found: a.txt\nSuggestions:\n  - b.txt\n  - c/a.txt"
    )


def test_to_text_of_a_truncated_answer_ends_with_the_next_call() -> None:
    data = {"content": "abc", "next": 'read_file(path="a", offset=4)'}

    text = new_result(Success(data, "abc"), meta(truncated=True)).to_text()

    assert text == 'abc\n[truncated; to continue: read_file(path="a", offset=4)]'


def test_to_text_shows_names_one_a_line_and_other_data_as_json() -> None:
    assert new_result(Success({"files": ["a", "b"]}, ["a", "b"]), meta()).to_text() == "a\nb"
    assert json.loads(new_result(Success({"n": 1}), meta()).to_text()) == {"n": 1}


def test_to_mcp_is_a_call_tool_result() -> None:
    assert read().to_mcp() == {
        "content": [{"type": "text", "text": "hello"}],
        "structuredContent": {"content": "hello", "size": 5},
        "isError": False,
    }
    failed = missing().to_mcp()
    assert failed["isError"] is True
    assert failed["structuredContent"]["error"]["code"] == "E_FILE_NOT_FOUND"
