"""Attempts to get a client's call past the policy by how its event is written."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolreeve.config import Configuration, load
from toolreeve.core.call import LOCAL
from toolreeve.core.verdict import Decision
from toolreeve.hook.events import MalformedEvent, parse_event
from toolreeve.hook.judge import ClientRequest, Judge, strictest


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hook")
    for name in ("home/.ssh", "project/src", "elsewhere"):
        (folder / name).mkdir(parents=True)
    (folder / "home/.ssh/id_rsa").write_text("key")
    (folder / "project/.env").write_text("TOKEN=x")
    (folder / "project/out").symlink_to("../elsewhere")
    (folder / "project/notes").symlink_to(".env")
    return folder


@pytest.fixture(scope="module")
def judge(place: Path) -> Iterator[Judge]:
    environ = {"HOME": str(place / "home"), "PATH": os.environ["PATH"]}
    configuration: Configuration = load({"workspace.dir": str(place / "project")}, origin="hook", environ=environ)
    made = Judge(configuration, LOCAL)
    yield made
    made.close()


def decide(judge: Judge, place: Path, tool: str, args: dict[str, Any], cwd: str = "") -> Decision:
    folder = cwd or str(place / "project")
    request = ClientRequest(client="claude-code", session="s", tool=tool, args=args, cwd=folder)
    return strictest(judge.judge(request)).decision


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Ｂash", {"command": "ls"}),
        ("bash ", {"command": "ls"}),
        ("Bash\0", {"command": "ls"}),
        ("BASH", {"command": "rm -rf src"}),
        ("Task", {"prompt": "delete everything", "subagent_type": "general"}),
        ("Agent", {"prompt": "x"}),
        ("KillShell", {"shell_id": "1"}),
        ("mcp__files__read_file", {"path": "/etc/shadow"}),
        ("mcp__evil__Bash", {"command": "ls"}),
        ("Bash", {}),
        ("Bash", {"command": None}),
        ("Bash", {"command": 7}),
        ("Bash", {"command": ["ls", 7]}),
        ("Bash", {"command": "ls", "cmd": "rm -rf src"}),
        ("Bash", {"command": "ls\0; rm -rf src"}),
        ("Bash", {"command": "ls \u2028 rm -rf src; rm -rf src"}),
        ("Bash", {"command": "ls; ${x:-rm} -rf src"}),
        ("shell", {"command": ["bash", "-lc", "rm -rf src"]}),
        ("local_shell", {"command": ["rm", "-rf", "src"]}),
        ("exec_command", {"cmd": "rm -rf src"}),
        ("run_shell_command", {"command": "rm -rf src", "directory": ".."}),
        ("Write", {"file_path": "out/x", "content": "x"}),
        ("Write", {"file_path": "src/../../elsewhere/x", "content": "x"}),
        ("Write", {"file_path": ".git/hooks/pre-commit", "content": "x"}),
        ("Edit", {"file_path": ".claude/settings.json", "old_string": "a", "new_string": "b"}),
        ("MultiEdit", {"file_path": "out/x", "edits": []}),
        ("NotebookEdit", {"notebook_path": "out/x.ipynb", "new_source": "x"}),
        ("Read", {"file_path": "~/.ssh/id_rsa"}),
        ("Read", {"file_path": "out/x"}),
        ("Read", {"file_path": ["/etc/shadow"]}),
        ("Read", {"path": "src/a", "file_path": "/etc/shadow"}),
        ("Read", {}),
        ("Read", {"file_path": "/etc/shadow", "path": "src/a"}),
        ("Read", {"file_path": "~/notes.txt"}),
        ("Read", {"filePath": "/etc/shadow"}),
        ("read_file", {"path": "src/a", "absolute_path": "/etc/shadow"}),
        ("read_file", {"absolute_path": "src/a", "file_path": "/etc/shadow"}),
        ("Glob", {"pattern": "../elsewhere/*"}),
        ("Glob", {"pattern": "~/*"}),
        ("LS", {"path": "/etc"}),
        ("Bash", {"command": "ls ../elsewhere"}),
        ("Grep", {"pattern": "x", "path": ["/"]}),
        ("Grep", {"pattern": "x", "path": "/"}),
        ("Glob", {"pattern": "/etc/**"}),
        ("read_many_files", {"include": ["src/a", "/etc/shadow"]}),
        ("read_many_files", {"paths": 7}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: src/a\n*** Move to: /etc/x\n*** End Patch"}),
        ("apply_patch", {"input": "*** begin patch\n*** update file: /etc/x\n"}),
        ("WebFetch", {"url": "file:///etc/passwd"}),
        ("WebFetch", {"url": "http://169.254.169.254/", "prompt": "x"}),
        ("WebFetch", {"url": "http://[::ffff:127.0.0.1]/"}),
        ("WebFetch", {"url": "http://0x7f.1/"}),
        ("WebFetch", {"url": ["https://example.com"]}),
        ("web_fetch", {"prompt": "HTTP://LOCALHOST:8080/admin"}),
        ("web_fetch", {"prompt": "fetch localhost:8080 please"}),
    ],
)
def test_nothing_is_allowed_for_how_it_is_written(judge: Judge, place: Path, tool: str, args: dict[str, Any]) -> None:
    assert decide(judge, place, tool, args) > Decision.ALLOW


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("Read", {"file_path": "notes"}),
        ("Read", {"file_path": "src/../.env"}),
        ("Bash", {"command": "cat .en''v"}),
        ("Bash", {"command": "cat < notes"}),
        ("Bash", {"command": "cp .env src/x"}),
    ],
)
def test_a_secret_is_denied_under_every_name(judge: Judge, place: Path, tool: str, args: dict[str, Any]) -> None:
    assert decide(judge, place, tool, args) is Decision.DENY


def test_the_directory_of_a_call_moves_its_paths_and_not_the_workspace(judge: Judge, place: Path) -> None:
    elsewhere = str(place / "elsewhere")

    assert decide(judge, place, "Write", {"file_path": "x", "content": "x"}, elsewhere) > Decision.ALLOW
    assert decide(judge, place, "Bash", {"command": "touch x"}, elsewhere) > Decision.ALLOW
    assert decide(judge, place, "Read", {"file_path": "x"}, elsewhere) > Decision.ALLOW


@pytest.mark.parametrize(
    "raw",
    [
        b'{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{},"cwd":7}',
        b'{"hook_event_name":["PreToolUse"],"session_id":"s","tool_name":"Bash","tool_input":{}}',
        b'{"hook_event_name":"PreToolUse","session_id":"s","tool_name":null,"tool_input":{}}',
        b'{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":[]}',
        b'{"hook_event_name":"pretooluse","session_id":"s","tool_name":"Bash","tool_input":{}}',
        b'{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Bash","tool_input":{}}',
        b'{"hook_event_name":"BeforeTool","session_id":"s","tool_name":"Bash","tool_input":{}}',
        b'{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":["x"]}',
        b'{"a":' * 50_000,
        b"9" * 5_000,
    ],
)
def test_an_event_that_says_something_else_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedEvent):
        parse_event("claude-code", raw)


def test_of_two_equal_keys_the_last_counts_as_it_does_for_the_client() -> None:
    raw = b'{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Read","tool_name":"Bash","tool_input":{}}'

    assert parse_event("claude-code", raw)["tool_name"] == "Bash"
    assert json.loads(raw)["tool_name"] == "Bash"
