"""Permission requests as real agents send them, and the calls that they stand for."""

from typing import Any

import pytest

from toolreeve.acp.client.permission_calls import read_calls
from toolreeve.acp.client.profiles import PROFILES
from toolreeve.hook.client_tools import ClientCall

CWD = "/project"
RECORDED: list[tuple[str, dict[str, Any], list[ClientCall]]] = [
    (
        "goose",
        {"toolCallId": "c", "kind": "other", "title": "write", "rawInput": {"path": "/project/a", "content": "x"}},
        [ClientCall("write_file", {"path": "/project/a", "content": "x"})],
    ),
    (
        "goose",
        {"kind": "other", "title": "Shell", "_meta": {"goose": {"toolCall": {"toolName": "shell"}}}}
        | {"rawInput": {"command": "touch x"}},
        [ClientCall("bash", {"command": "touch x", "working_dir": "/project/."})],
    ),
    (
        "fast-agent",
        {"kind": "edit", "title": "write", "rawInput": {"content_length": 3}}
        | {"content": [{"type": "diff", "path": "/project/a", "oldText": None, "newText": "abc"}]},
        [ClientCall("write_file", {"path": "/project/a", "content": "abc"})],
    ),
    (
        "gemini",
        {"kind": "execute", "title": "touch x [current working directory /project] (makes x)"},
        [ClientCall("bash", {"command": "touch x", "working_dir": "/project"})],
    ),
    (
        "gemini",
        {"kind": "edit", "title": "Writing to a", "locations": [{"path": "/project/a"}]}
        | {"content": [{"type": "diff", "path": "a", "newText": "n"}]},
        [ClientCall("write_file", {"path": "/project/a", "content": "n"})],
    ),
    (
        "qwen",
        {"kind": "edit", "title": "WriteFile", "_meta": {"toolName": "write_file"}}
        | {"rawInput": {"file_path": "/project/a", "content": "x"}},
        [ClientCall("write_file", {"path": "/project/a", "content": "x"})],
    ),
    (
        "claude",
        {"kind": "execute", "title": "`touch x`", "_meta": {"claudeCode": {"toolName": "Bash"}}}
        | {"rawInput": {"command": "touch x", "description": "makes x"}},
        [ClientCall("bash", {"command": "touch x", "working_dir": "/project/."})],
    ),
    (
        "codex",
        {"kind": "edit", "title": "Edit files", "locations": [{"path": "/project/a"}, {"path": "b"}]},
        [ClientCall("write_file", {"path": "/project/a"}), ClientCall("write_file", {"path": "/project/b"})],
    ),
    (
        "codex",
        {"kind": "execute", "title": "touch x", "rawInput": {"command": ["bash", "-lc", "touch x"], "cwd": "/project"}},
        [ClientCall("bash", {"command": "bash -lc 'touch x'", "working_dir": "/project"})],
    ),
    (
        "opencode",
        {
            "kind": "edit",
            "title": "write",
            "rawInput": {"filePath": "/project/a"},
            "locations": [{"path": "/project/a"}],
        },
        [ClientCall("write_file", {"path": "/project/a"})],
    ),
    ("vibe", {"toolCallId": "c"}, [ClientCall("unknown", {})]),
    (
        "hermes",
        {"toolCallId": "perm-check-1", "kind": "execute", "title": "rm x", "rawInput": {"command": "rm x"}},
        [ClientCall("bash", {"command": "rm x", "working_dir": "/project/."})],
    ),
]


@pytest.mark.parametrize(("agent", "call", "expected"), RECORDED)
def test_a_request_of_a_real_agent_is_read(agent: str, call: dict[str, Any], expected: list[ClientCall]) -> None:
    assert read_calls(call, PROFILES[agent], cwd=CWD) == expected


def test_a_claim_to_read_counts_only_for_what_reading_needs() -> None:
    harmless = {"kind": "read", "title": "Look", "rawInput": {"path": "a", "limit": 5}}
    claimed = {"kind": "read", "title": "Look", "rawInput": {"sql": "drop"}, "locations": [{"path": "a"}]}

    assert read_calls(harmless, PROFILES["generic"], cwd=CWD)[0].tool == "read_file"
    assert read_calls(claimed, PROFILES["generic"], cwd=CWD) == [ClientCall("Look", {"sql": "drop"})]


@pytest.mark.parametrize("name", ["TodoWrite", "read_file", "list_directory"])
def test_the_name_of_a_harmless_tool_hides_no_change(name: str) -> None:
    calls = read_calls({"kind": "execute", "title": name, "rawInput": {"path": "a"}}, PROFILES["generic"], cwd=CWD)

    assert ClientCall("unknown", {"path": "a"}) in calls
    assert read_calls({"kind": "execute", "title": name}, PROFILES["generic"], cwd=CWD) == [ClientCall("unknown", {})]


@pytest.mark.parametrize(
    "named",
    [
        {"kind": "other", "title": "Delete", "_meta": {"toolName": "mcp__github__delete_repo"}},
        {"kind": "execute", "title": "Delete", "_meta": {"toolName": "mcp__github__delete_repo"}},
        {"kind": "other", "title": "delete the repository"},
    ],
)
@pytest.mark.parametrize("key", ["command", "cmd"])
def test_a_command_among_the_arguments_of_another_tool_does_not_make_it_a_shell(
    named: dict[str, Any], key: str
) -> None:
    calls = read_calls({**named, "rawInput": {"repo": "x", key: "ls"}}, PROFILES["generic"], cwd=CWD)

    assert [each.tool for each in calls][-1] in ("mcp__github__delete_repo", "unknown")


@pytest.mark.parametrize("title", ["Read", "TodoWrite", "glob"])
def test_a_title_alone_does_not_make_a_tool_one_that_only_reads(title: str) -> None:
    call = {"kind": "other", "title": title, "rawInput": {"sql": "drop"}}

    assert ClientCall("unknown", {"sql": "drop"}) in read_calls(call, PROFILES["generic"], cwd=CWD)


def test_locations_count_beside_the_input() -> None:
    call = {"kind": "read", "title": "Look", "rawInput": {"path": "a"}, "locations": [{"path": "/etc/shadow"}]}

    calls = read_calls(call, PROFILES["generic"], cwd=CWD)

    assert calls == [ClientCall("read_file", {"path": "/project/a"}), ClientCall("read_file", {"path": "/etc/shadow"})]


def test_a_title_is_no_command_unless_the_agent_writes_commands_there() -> None:
    call = {"kind": "execute", "title": "ls"}

    assert read_calls(call, PROFILES["generic"], cwd=CWD) == [ClientCall("ls", {})]


@pytest.mark.parametrize("value", [None, 7, "text", [1], {"a": {}}, [{"type": "diff"}], [{"path": 3}]])
def test_malformed_requests_are_unknown_calls(value: Any) -> None:
    call = {"title": value, "kind": value, "rawInput": value, "content": value, "locations": value, "_meta": value}

    calls = read_calls(call, PROFILES["gemini"], cwd=CWD)

    assert len(calls) == 1
    assert calls[0].tool not in ("read_file", "bash", "write_file")
