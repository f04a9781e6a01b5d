import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hook.conftest import Person
from toolreeve.hook.private_socket import socket_path

HEAVY = ("asyncio", "click", "typing", "dataclasses", "inspect", "orjson", "sqlite3", "subprocess", "tomllib", "yaml")


def test_the_hot_path_imports_the_standard_library_and_little_of_it() -> None:
    script = (
        "import sys\n"
        "import toolreeve.hook.command\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
        "print(sorted(n for n in sys.modules if n.startswith('toolreeve')))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)

    heavy, ours = done.stdout.splitlines()
    assert heavy == "[]"
    expected = ["toolreeve", "toolreeve.hook", "toolreeve.hook.command", "toolreeve.hook.events"]
    more = ["toolreeve.hook.headless", "toolreeve.hook.private_socket", "toolreeve.safe_path"]
    assert ours == repr([*expected, *more])


def test_a_reading_command_is_allowed_and_a_deletion_is_asked_about(person: Person) -> None:
    assert person.hook("Bash", {"command": "ls"}).decision == "allow"

    asked = person.hook("Bash", {"command": "rm -rf build"})

    assert asked.decision == "ask"
    assert "deletes" in asked.reason


def test_a_secret_is_denied_to_every_tool_that_would_read_it(person: Person) -> None:
    (person.project / ".env").write_text("TOKEN=abc")
    (person.project / "notes").symlink_to(".env")

    for tool, args in (
        ("Read", {"file_path": ".env"}),
        ("Read", {"file_path": str(person.project / "notes")}),
        ("Bash", {"command": "cat .env"}),
        ("Bash", {"command": "cat notes"}),
        ("Read", {"file_path": str(person.home / ".ssh/id_rsa")}),
    ):
        assert person.hook(tool, args).decision == "deny", (tool, args)


def test_what_lies_outside_the_workspace_is_asked_about(person: Person) -> None:
    (person.project / "link").symlink_to("/etc/hostname")

    assert person.hook("Read", {"file_path": "/etc/hostname"}).decision == "ask"
    assert person.hook("Read", {"file_path": "link"}).decision == "ask"
    assert person.hook("Bash", {"command": "cat link"}).decision == "ask"
    assert person.hook("Write", {"file_path": "/etc/cron.d/x", "content": "x"}).decision == "ask"


def test_edits_are_never_allowed_for_the_sake_of_an_undo_that_does_not_exist(person: Person) -> None:
    (person.home / ".config/toolreeve/toolreeve.toml").write_text(
        '[policy]\nmode = "accept_edits"\n[hooks]\nresident_minutes = 0\n'
    )

    assert person.hook("Write", {"file_path": "a.txt", "content": "x"}).decision == "ask"


def test_internal_addresses_are_denied_to_fetches(person: Person) -> None:
    assert person.hook("WebFetch", {"url": "http://169.254.169.254/latest/"}).decision == "deny"
    assert person.hook("WebFetch", {"url": "http://127.1:8080/"}).decision == "deny"
    assert person.hook("WebFetch", {"url": "https://example.com/"}).decision == "allow"


def test_an_unknown_tool_is_asked_about_and_a_harmless_one_left_to_the_client(person: Person) -> None:
    assert person.hook("mcp__github__delete_repo", {"name": "x"}).decision == "ask"
    assert person.hook("SomethingNew", {}).decision == "ask"
    assert person.hook("TodoWrite", {"todos": []}).out == ""


def test_our_own_tools_are_left_to_themselves_and_a_lying_server_is_not(person: Person) -> None:
    ours = {"command": "/opt/venv/bin/toolreeve", "args": ["mcp"]}
    assert person.hook("mcp__toolreeve__bash", {"command": "x"}).decision == "ask"

    (person.home / ".claude.json").write_text(json.dumps({"mcpServers": {"toolreeve": ours}}))
    assert person.hook("mcp__toolreeve__bash", {"command": "x"}).out == ""

    (person.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"toolreeve": {"command": "./evil"}}}))
    assert person.hook("mcp__toolreeve__bash", {"command": "x"}).decision == "ask"


def test_rules_of_the_user_decide_about_the_clients_tools(person: Person) -> None:
    (person.home / ".config/toolreeve/policy.yaml").write_text(
        "rules:\n"
        "  - {id: no-curl, program: curl, decision: deny, reason: no network}\n"
        "  - {tool: edit_file, decision: allow, target: {under: [src]}, effect: [write, read]}\n"
    )

    denied = person.hook("Bash", {"command": "ls && curl https://example.com"})
    assert (denied.decision, denied.reason) == ("deny", "toolreeve: no network")
    edit = {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}
    assert person.hook("Edit", edit).decision == "allow"
    several = {"file_path": "src/a.py", "edits": [{"old_string": "a", "new_string": "b"}]}
    assert person.hook("MultiEdit", several).decision == "allow"
    assert person.hook("Edit", edit | {"file_path": "other/a.py"}).decision == "ask"


def test_codex_gets_no_answer_it_cannot_read(person: Person) -> None:
    """It ignores `allow` and `ask` as invalid, and would go on."""
    assert person.hook("Bash", {"command": "ls"}, client="codex").out == ""

    asked = person.hook("Bash", {"command": "rm -rf build"}, client="codex")
    assert asked.decision == "deny"
    assert "needs approval by a person" in asked.reason

    permission = {"client": "codex", "hook_event_name": "PermissionRequest"}
    assert person.hook("Bash", {"command": "rm -rf build"}, **permission).out == ""
    allowed = person.hook("Bash", {"command": "ls"}, **permission)
    assert allowed.json["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


def test_a_patch_is_judged_by_every_file_it_touches(person: Person) -> None:
    (person.home / ".config/toolreeve/policy.yaml").write_text(
        "rules:\n  - {tool: write_file, decision: allow, effect: write, target: {under: [src]}}\n"
    )
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n{more}*** End Patch"

    inside = person.hook("apply_patch", {"command": patch.format(more="")}, client="codex")
    outside = person.hook("apply_patch", {"command": patch.format(more="*** Add File: /etc/x\n+y\n")}, client="codex")

    assert inside.out == ""
    assert outside.decision == "deny"


def test_gemini_is_answered_in_its_own_words(person: Person) -> None:
    assert person.hook("run_shell_command", {"command": "ls"}, client="gemini").json["decision"] == "allow"
    asked = person.hook("run_shell_command", {"command": "rm -rf x"}, client="gemini").json
    assert asked["decision"] == "ask"
    assert asked["systemMessage"] == asked["reason"]
    assert person.hook("read_file", {"file_path": ".env"}, client="gemini").json["decision"] == "deny"
    fetched = {"prompt": "compare https://example.com with http://10.0.0.1/admin"}
    assert person.hook("web_fetch", fetched, client="gemini").json["decision"] == "deny"


async def test_calls_are_recorded_with_their_origin_and_client(person: Person) -> None:
    person.hook("Bash", {"command": "ls"})
    person.hook("Read", {"file_path": ".env"}, client="gemini", tool_name="read_file")

    denied, allowed = await person.records(kind="call")

    keys = ("origin", "client", "session", "tool", "success")
    assert [allowed.body[key] for key in keys] == ["hook", "claude-code", "s1", "bash", None]
    assert [denied.body[key] for key in keys] == ["hook", "gemini", "s1", "read_file", False]
    assert denied.body["decision"]["effect"] == "deny"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"hook_event_name": "PreToolUse"}',
        b'{"hook_event_name": "Other", "session_id": "s", "tool_name": "Bash", "tool_input": {}}',
        b'{"hook_event_name": "PreToolUse", "session_id": 1, "tool_name": "Bash", "tool_input": {}}',
        b'{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": "ls"}',
        b'{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": ["Bash"], "tool_input": {}}',
        b'{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/nowhere","tool_name":"Bash","tool_input":{}}',
        b"[" * 100_000,
    ],
)
def test_an_event_that_cannot_be_read_is_refused(person: Person, raw: bytes) -> None:
    refused = person.send("claude-code", raw)

    assert refused.status == 2
    assert "refused" in refused.err
    assert refused.out == ""


def test_an_oversized_event_is_refused(person: Person) -> None:
    refused = person.hook("Write", {"file_path": "a", "content": "x" * (16 * 1024 * 1024)})

    assert refused.status == 2
    assert "larger than 16 MB" in refused.err


def test_a_broken_configuration_refuses_with_its_problem(person: Person) -> None:
    (person.home / ".config/toolreeve/toolreeve.toml").write_text("[policy]\nmoed = 'strict'\n")

    refused = person.hook("Bash", {"command": "ls"})

    assert refused.status == 2
    assert "moed" in refused.err


def test_a_record_that_cannot_be_written_refuses(person: Person) -> None:
    state = person.home / ".local/state"
    state.mkdir(parents=True)
    (state / "toolreeve").write_text("in the way")

    assert person.hook("Bash", {"command": "rm x"}).status == 2


def test_a_wrong_client_is_refused(person: Person) -> None:
    assert person.send("nobody", b"{}").status == 2


def test_a_projects_file_cannot_loosen_what_hooks_decide(person: Person) -> None:
    (person.project / "toolreeve.toml").write_text('[policy]\nallowed_tools = ["bash"]\n')
    assert person.hook("Bash", {"command": "rm -rf /"}).status == 2

    (person.project / "toolreeve.toml").write_text('[principal]\nrole = "admin"\n')
    refused = person.hook("Bash", {"command": "ls"})
    assert refused.status == 2
    assert "a project's file may not set this" in refused.err


def test_the_folder_the_client_was_started_in_is_the_workspace(person: Person, tmp_path: Path) -> None:
    """Its cwd follows the agent's `cd`: that must not move the workspace."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("x")
    moved = Person(person.home, person.project, person.environ | {"CLAUDE_PROJECT_DIR": str(person.project)})

    assert moved.hook("Read", {"file_path": "file"}, cwd=str(elsewhere)).decision == "ask"


async def test_what_the_user_types_is_kept_for_the_flow_of_information(person: Person) -> None:
    from toolreeve.record.store import Store

    def submit(prompt: str, **more: str) -> None:
        event = {"hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": str(person.project), **more}
        answered = person.send("claude-code", json.dumps(event | {"prompt": prompt}).encode())
        assert (answered.status, answered.out) == (0, "")

    submit("write to bob@example.com")
    submit("from a subagent", agent_id="a1")
    submit("<task-notification>done</task-notification>")

    store = Store(person.home / ".local/state/toolreeve/toolreeve.db", read_only=True)
    await store.start()
    facts = await store.flow_facts(lambda: 0.0).find(user="local", session="s1")
    await store.close()
    assert [(fact.value, fact.by) for fact in facts] == [("write to bob@example.com", "local (claude-code)")]


def test_a_path_of_a_socket_depends_on_all_that_changes_decisions(tmp_path: Path) -> None:
    paths = {
        socket_path(str(tmp_path), {"HOME": "/a"}),
        socket_path(str(tmp_path), {"HOME": "/b"}),
        socket_path(str(tmp_path), {"HOME": "/a", "TOOLREEVE_POLICY_MODE": "strict"}),
        socket_path("/", {"HOME": "/a"}),
    }
    assert len(paths) == 4
    assert socket_path(str(tmp_path), {"HOME": "/a", "TERM": "x"}) in paths
