"""YAML tools run on trial like commands, where what they declare allows it."""

from pathlib import Path

import pytest

from tests.pipeline.test_confinement import Person
from tests.world import World
from toolreeve.config import Policy
from toolreeve.config.sections.policy import Mode
from toolreeve.core.result import ToolResult
from toolreeve.core.trial import Confinement

NETWORK = "  sandbox: {network: guarded}\n"


async def run(world: World, script: str, person: Person, more: str = "", *, mode: Mode = "default") -> ToolResult:
    file = world.workspace.parent / "tools.yaml"
    file.write_text(f"tools:\n note:\n  danger: medium\n  description: Take a note.\n{more}  script: {script}\n")
    settings = world.settings(tool_files=(str(file),), policy=Policy(mode=mode))
    async with world.reeve(settings=settings, approve=person) as reeve:
        return await reeve.call("note")


async def test_a_tool_that_changes_nothing_is_answered_unasked(world: World) -> None:
    person = Person(agrees=False)

    result = await run(world, "echo hello", person)

    assert (result.output, result.meta.runs, person.questions) == ("hello\n", Confinement.TRY, [])


@pytest.mark.parametrize("agrees", [True, False])
async def test_a_person_decides_about_what_it_changed(world: World, *, agrees: bool) -> None:
    person = Person(agrees=agrees)

    result = await run(world, "echo hello > note.txt", person)

    (question,) = person.questions
    assert "+hello" in question.preview
    assert (result.success, (world.workspace / "note.txt").exists()) == (agrees, agrees)


async def test_plan_mode_shows_what_it_would_change(world: World) -> None:
    result = await run(world, "echo hello > note.txt", Person(agrees=True), mode="plan")

    assert "this would change" in result.to_text()
    assert not (world.workspace / "note.txt").exists()


async def test_a_tool_with_a_network_is_asked_about_beforehand(world: World) -> None:
    person = Person(agrees=False)

    await run(world, "echo hello", person, NETWORK)

    assert "it cannot run confined: it needs the network" in person.questions[0].verdict.reason


async def test_an_approved_tool_can_be_undone(world: World, tmp_path: Path) -> None:
    file = tmp_path / "tools.yaml"
    file.write_text("tools:\n  note: {description: Take a note., script: echo hello > note.txt}\n")
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules:\n  - {tool: note, decision: allow}\n")
    settings = world.settings(tool_files=(str(file),), policy=Policy(files=(str(rules),)))
    async with world.reeve(settings=settings, approve=Person(agrees=True)) as reeve:
        written = await reeve.call("note")
        exists = (world.workspace / "note.txt").exists()
        undone = await reeve.undo(written.meta.call_id)

    assert (written.meta.runs, exists, undone.success) == (Confinement.WORK, True, True)
    assert not (world.workspace / "note.txt").exists()
