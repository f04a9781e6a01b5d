from pathlib import Path
from typing import Any

import pytest

from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.tool import AnyFunctionTool, bind
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.known_tools import (
    ALIASES,
    KNOWN,
    NAMESAKES,
    canonical,
    get_tool_danger_level,
    is_tool_safe,
    names_of,
    requires_approval,
    suspects_of,
)
from toolreeve.runtime.builtin import TOOLS

SAFE = ("read_file", "file_exists", "list_directory", "fetch_url", "extract_links", "http_get")
MEDIUM = ("write_file", "http_post", "http_put")
HIGH = ("delete_file", "http_delete", "bash_command")


def test_the_twelve_builtin_tools_have_their_documented_levels() -> None:
    levels = {name: get_tool_danger_level(name) for name in (*SAFE, *MEDIUM, *HIGH)}

    assert levels == {
        **dict.fromkeys(SAFE, DangerLevel.SAFE),
        **dict.fromkeys(MEDIUM, DangerLevel.MEDIUM),
        **dict.fromkeys(HIGH, DangerLevel.HIGH),
    }


def test_the_documented_helpers_answer_as_documented() -> None:
    assert is_tool_safe("read_file")
    assert not is_tool_safe("write_file")
    assert requires_approval("write_file", DangerLevel.MEDIUM)
    assert requires_approval("bash_command")
    assert not requires_approval("read_file")
    assert not requires_approval("write_file", DangerLevel.HIGH)


@pytest.mark.parametrize("helper", [get_tool_danger_level, is_tool_safe, requires_approval])
def test_an_unknown_name_is_refused_with_a_suggestion(helper: object) -> None:
    assert callable(helper)
    with pytest.raises(ValueError, match=r"unknown tool 'raed_file' \(did you mean 'read_file'"):
        helper("raed_file")


@pytest.mark.parametrize(
    "name", ["Bash", "shell", "bash_command", "mcp__toolreeve_builtin__bash", "toolreeve_builtin__bash"]
)
def test_every_spelling_of_a_tool_means_the_same_one(name: str) -> None:
    assert canonical(name) == "bash"


def test_a_spelled_out_alias_of_the_builtin_server_is_the_tool() -> None:
    assert canonical("mcp__toolreeve_builtin__bash_command") == "bash"


def test_every_other_name_leads_to_a_tool_that_is_known() -> None:
    assert {name for name in (*ALIASES.values(), *NAMESAKES.values()) if name not in KNOWN} == set()
    assert {name for name in NAMESAKES if name not in KNOWN} == set()


def test_a_tool_of_a_server_cannot_take_the_name_of_a_builtin() -> None:
    assert names_of("evil__bash", server="evil") == {"evil__bash", "mcp__evil__bash"}
    assert "bash" not in names_of("mcp__toolreeve_builtin__bash", server="mcp")


def test_a_namesake_is_reached_by_a_deny_but_is_no_name_of_the_tool() -> None:
    assert "run_shell_command" in suspects_of("bash", server=None)
    assert "bash" in suspects_of("run_shell_command", server=None)
    assert "run_shell_command" not in names_of("bash", server=None)


@pytest.mark.parametrize("registered", TOOLS, ids=lambda each: each.name)
def test_what_is_known_by_name_is_what_the_registered_tool_says(registered: AnyFunctionTool) -> None:
    known, spec = KNOWN[registered.name], registered.spec

    assert (known.danger, known.read_only, known.category) == (spec.danger, spec.read_only, spec.category)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read_file", {"path": "a/b.txt"}),
        ("list_directory", {}),
        ("search_text", {"pattern": "x", "path": "a"}),
        ("write_file", {"path": "new.txt", "content": ""}),
        ("edit_file", {"path": "a/b.txt", "edits": [{"old": "a", "new": "b"}]}),
        ("delete_file", {"path": "a/../a/b.txt"}),
        ("move_file", {"source": "a/b.txt", "destination": "c.txt"}),
    ],
)
def test_a_call_imagined_by_name_has_the_effects_of_the_real_one(
    name: str, args: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").touch()
    real = bind(next(each for each in TOOLS if each.name == name))
    files = WorkspaceFiles(tmp_path.resolve())

    action = Action(ToolCall(tool=name, args=args), real, real.input.parse(args), files)

    assert set(build_action(name, args, root=files.root).effects) == set(action.effects)
