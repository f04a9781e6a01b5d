"""Files that may hold secrets are hidden from commands until someone approves."""

import pytest

from tests.pipeline.test_confinement import Person
from tests.world import World
from toolreeve.config import Policy
from toolreeve.config.sections.policy import Mode
from toolreeve.core.errors import ErrorCode

READERS = {
    "look": "grep -r '' .",
    "try": "python3 -c \"print(open('secrets.yaml').read())\"",
}


@pytest.fixture
def world(world: World) -> World:
    (world.workspace / "secrets.yaml").write_text("hunter2\n")
    (world.workspace / "plain").write_text("plain\n")
    return world


@pytest.mark.parametrize("runs", READERS)
async def test_a_command_that_needs_one_is_asked_about_and_then_sees_it(world: World, runs: str) -> None:
    person = Person(agrees=True)

    async with world.reeve(approve=person) as reeve:
        result = await reeve.call("bash", command=READERS[runs])

    [question] = person.questions
    assert "secrets.yaml: such files may hold secrets and are hidden" in question.verdict.reason
    assert result.success, result.to_text()
    assert "hunter2" in result.to_text()


@pytest.mark.parametrize("mode", ["default", "plan", "accept_edits"])
@pytest.mark.parametrize("runs", READERS)
async def test_where_nobody_can_be_asked_the_answer_says_what_is_hidden(world: World, runs: str, mode: Mode) -> None:
    async with world.reeve(settings=world.settings(policy=Policy(mode=mode))) as reeve:
        result = await reeve.call("bash", command=READERS[runs])

    assert result.error is not None
    assert "secrets.yaml: such files may hold secrets and are hidden" in result.error.message
    assert "hunter2" not in result.to_text()


async def test_a_refusal_keeps_what_the_command_printed_without_it(world: World) -> None:
    async with world.reeve(approve=Person(agrees=False)) as reeve:
        result = await reeve.call("bash", command=READERS["look"])

    assert result.error is not None
    assert result.error.code is ErrorCode.APPROVAL_DENIED
    assert "plain:plain" in str(result.data)


async def test_reading_one_by_its_name_is_asked_about_once(world: World) -> None:
    person = Person(agrees=True)

    async with world.reeve(approve=person) as reeve:
        result = await reeve.call("bash", command="cat secrets.yaml")

    assert (result.output, len(person.questions)) == ("hunter2\n", 1)


async def test_what_was_approved_after_a_hidden_file_stopped_its_trial_can_be_undone(world: World) -> None:
    copies = "python3 -c \"open('copy', 'w').write(open('secrets.yaml').read())\""

    async with world.reeve(approve=Person(agrees=True)) as reeve:
        result = await reeve.call("bash", command=copies)
        copied = (world.workspace / "copy").exists()
        await reeve.undo(result.meta.call_id)

    assert result.success, result.to_text()
    assert "cannot be undone" not in result.to_text()
    assert (copied, (world.workspace / "copy").exists()) == (True, False)
