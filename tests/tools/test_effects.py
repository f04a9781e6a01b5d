"""Effects of the builtin tools; rules about a file apply to every way to reach it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tools.file_tools import FileTools
from tests.world import World
from toolreeve import ErrorCode, ExecutionContext, PermissionMode, PermissionPolicy, PermissionRule
from toolreeve.config import Quality
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.tool import bind
from toolreeve.runtime.builtin import TOOLS
from toolreeve.runtime.shell_tools import with_analysis

PATH = {"path": "a.txt"}
URL = {"url": "https://e.example/x"}
CHECKS = {"exec exact", "read below", "write below", "delete below"}
EFFECTS: Mapping[str, tuple[Mapping[str, Any], set[str]]] = {
    "read_file": (PATH, {"read exact"}),
    "file_exists": (PATH, {"read names"}),
    "list_directory": ({}, {"read names"}),
    "search_files": ({"pattern": "*"}, {"read names"}),
    "search_text": ({"pattern": "x"}, {"read below"}),
    "search_directory": ({"name": "x"}, {"read names"}),
    "write_file": ({**PATH, "content": ""}, {"write exact"}),
    "edit_file": ({**PATH, "edits": []}, {"read exact", "write exact"}),
    "delete_file": (PATH, {"delete exact"}),
    "move_file": ({"source": "a.txt", "destination": "b"}, {"read exact", "delete exact", "write exact"}),
    "undo": ({"session": "none"}, set()),
    "http_get": (URL, {"net exact"}),
    "http_post": (URL, {"net exact", "send exact"}),
    "http_put": (URL, {"net exact", "send exact"}),
    "http_delete": (URL, {"net exact", "send exact"}),
    "http_request": ({**URL, "method": "POST"}, {"net exact", "send exact"}),
    "fetch_url": (URL, {"net exact"}),
    "extract_links": (URL, {"net exact"}),
    "get_system_info": ({}, {"read names"}),
    "get_datetime": ({}, set()),
    "list_llm_models": ({}, set()),
    "get_audit_log": ({}, set()),
    "read_output": ({"call_id": "x"}, set()),
    "calculate": ({"expression": "1"}, set()),
    "bash": ({"command": "cat a.txt"}, {"exec exact", "read exact"}),
    "execute_command": ({"command": "cat a.txt"}, {"exec exact", "read exact"}),
    "git_status": ({}, {"exec exact", "read names"}),
    "git_diff": ({}, {"exec exact", "read below"}),
    "run_tests": ({}, CHECKS),
    "run_lint": ({}, CHECKS),
    "run_typecheck": ({}, CHECKS),
    "run_build": ({}, CHECKS),
    "run_format": ({}, {"exec exact", "read below"}),
}


def test_every_builtin_tool_declares_its_effects(file_tools: FileTools) -> None:
    file_tools.write("a.txt")
    found = {}
    for each in with_analysis(TOOLS, root=str(file_tools.root), home="/home/me"):
        assert each.list_effects is not None, f"{each.name} does not say what it would do"
        args = EFFECTS[each.name][0] if each.name in EFFECTS else {}
        found[each.name] = {f"{effect.kind} {effect.reach}" for effect in bind(each).effects(args, file_tools.files)}

    assert found == {name: kinds for name, (_, kinds) in EFFECTS.items()}


def effects(
    file_tools: FileTools, tool: str, quality: Mapping[str, tuple[str, ...]] | None = None, /, **args: Any
) -> list[Effect]:
    (bound,) = with_analysis([each for each in TOOLS if each.name == tool], root="/", home="/", quality=quality or {})
    return list(bind(bound).effects(args, file_tools.files))


def test_what_is_done_to_a_directory_is_done_to_all_that_it_holds(file_tools: FileTools) -> None:
    file_tools.write("books/a.ledger")
    books, there = str(file_tools.root / "books"), str(file_tools.root / "there")

    assert effects(file_tools, "move_file", source="books", destination="there") == [
        Effect(EffectKind.DELETE, books, Reach.BELOW),
        Effect(EffectKind.WRITE, there, Reach.BELOW),
        Effect(EffectKind.READ, books, Reach.BELOW),
    ]
    assert effects(file_tools, "delete_file", path="books") == [Effect(EffectKind.DELETE, books, Reach.BELOW)]
    assert effects(file_tools, "search_text", pattern="x", path="books/a.ledger") == [
        Effect(EffectKind.READ, f"{books}/a.ledger")
    ]


def test_taking_a_link_away_affects_the_link_and_its_target(file_tools: FileTools) -> None:
    file_tools.write("real.txt")
    (file_tools.root / "link").symlink_to("real.txt")

    targets = [effect.target for effect in effects(file_tools, "delete_file", path="link")]

    assert targets == [str(file_tools.root / "real.txt"), str(file_tools.root / "link")]


def test_a_trial_of_an_edit_only_reads(file_tools: FileTools) -> None:
    kinds = [effect.kind for effect in effects(file_tools, "edit_file", path="a", edits=[], dry_run=True)]

    assert kinds == [EffectKind.READ]


def test_checks_name_the_commands_that_they_start(file_tools: FileTools) -> None:
    file_tools.write("pyproject.toml", "[project]\nname = 'x'\n")

    found = effects(file_tools, "run_tests")
    by_hand = effects(file_tools, "run_tests", {"tests": ("python3 -m unittest", "make check")})
    formatting = effects(file_tools, "run_format", check_only=False)

    assert found[0] == Effect(EffectKind.EXEC, "pytest")
    assert [effect.target for effect in by_hand[:2]] == ["python3 -m unittest", "make check"]
    assert Effect(EffectKind.WRITE, str(file_tools.root), Reach.BELOW) in formatting


HUSH = PermissionRule(effect="read", target={"glob": "**/*.hush"}, decision="deny", reason="hush")


@pytest.fixture
def secretive(world: World) -> Path:
    place = world.workspace
    (place / "books").mkdir()
    (place / "books/plan.hush").write_text("draft\n")
    (place / "test_a.py").write_text("def test_a():\n    print(open('books/plan.hush').read())\n")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@e.example"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], cwd=place, check=True)
    (place / "books/plan.hush").write_text("the secret plan\n")
    return place


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_file", {"path": "books/plan.hush"}),
        ("search_text", {"pattern": "secret"}),
        ("search_text", {"pattern": "secret", "path": "books"}),
        ("git_diff", {}),
        ("edit_file", {"path": "books/plan.hush", "edits": [{"old": "the", "new": "a"}], "dry_run": True}),
        ("move_file", {"source": "books/plan.hush", "destination": "open.txt"}),
        ("move_file", {"source": "books", "destination": "open"}),
        ("run_tests", {}),
        ("bash", {"command": "cat books/plan.hush"}),
        ("execute_command", {"command": "grep -r secret ."}),
    ],
)
async def test_a_deny_on_reading_a_file_covers_every_tool_that_would_show_it(
    world: World, secretive: Path, tool: str, args: dict[str, Any]
) -> None:
    context = ExecutionContext(allowed_tools=[each.name for each in TOOLS], rules=[HUSH])

    async with world.reeve(policy=PermissionPolicy(context, root=str(secretive))) as reeve:
        result = await reeve.call(tool, args)

    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.DENIED, "hush")


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("search_text", {"pattern": "def", "path": "test_a.py"}),
        ("search_files", {"pattern": "*"}),
        ("list_directory", {"path": "books"}),
        ("git_status", {}),
        ("get_system_info", {}),
    ],
)
async def test_a_deny_on_reading_a_file_leaves_names_and_other_files_alone(
    world: World, secretive: Path, tool: str, args: dict[str, Any]
) -> None:
    policy = PermissionPolicy(ExecutionContext(rules=[HUSH]), root=str(secretive))

    async with world.reeve(policy=policy) as reeve:
        result = await reeve.call(tool, args)

    assert result.success, result.to_text()


async def test_a_deny_on_writing_covers_moving_the_folder_and_checks_that_may_write(world: World) -> None:
    (world.workspace / "books").mkdir()
    (world.workspace / "books/a.ledger").write_text("1")
    rule = PermissionRule(effect=["write", "delete"], target={"glob": "**/*.ledger"}, decision="deny")
    context = ExecutionContext(allowed_tools=["move_file", "run_tests", "run_format"], rules=[rule])
    settings = world.settings(quality=Quality(tests=("true",), format_check=("true",)))

    async with world.reeve(settings=settings, policy=PermissionPolicy(context, root=str(world.workspace))) as reeve:
        moved = await reeve.call("move_file", source="books", destination="x")
        tested = await reeve.call("run_tests")
        looked = await reeve.call("run_format")

    assert [result.error and result.error.code for result in (moved, tested)] == [ErrorCode.DENIED] * 2
    assert looked.success, looked.to_text()
    assert (world.workspace / "books/a.ledger").read_text() == "1"


async def test_an_allow_to_write_covers_editing_and_one_about_a_place_what_lies_below_it(world: World) -> None:
    (world.workspace / "drafts").mkdir()
    (world.workspace / "drafts/a.txt").write_text("one")
    drafts: dict[str, Any] = {"target": {"under": "drafts"}, "decision": "allow"}
    rules = [PermissionRule(effect="write", **drafts), PermissionRule(tool="search_text", effect="read", **drafts)]
    context = ExecutionContext(mode=PermissionMode.STRICT, rules=rules)

    async with world.reeve(policy=PermissionPolicy(context, root=str(world.workspace))) as reeve:
        edited = await reeve.call("edit_file", path="drafts/a.txt", edits=[{"old": "one", "new": "two"}])
        searched = await reeve.call("search_text", pattern="two", path="drafts")
        beyond = await reeve.call("search_text", pattern="two", path=".")

    assert edited.success, edited.to_text()
    assert searched.success, searched.to_text()
    assert beyond.error is not None
