"""What was allowed beforehand runs over layers that are kept, so that it can be undone."""

import subprocess
from pathlib import Path

import pytest

from tests.pipeline.test_confinement import Person, snapshot
from tests.world import World
from toolreeve.config import Commands, Policy, Trial
from toolreeve.core.errors import ErrorCode
from toolreeve.runtime.toolreeve import Toolreeve

RUN = "python3 - <<'EOF'\n{}\nEOF"
ALLOW = "rules:\n  - {id: commands, decision: allow, tool: [bash, undo]}\n"
DENY = ALLOW + "  - {id: frozen, decision: deny, effect: write, target: {under: [frozen]}}\n"


def allowing(
    world: World,
    rules: str = ALLOW,
    *,
    trial: Trial | None = None,
    commands: Commands | None = None,
    person: Person | None = None,
) -> Toolreeve:
    file = world.workspace.parent / "rules.yaml"
    file.write_text(rules)
    settings = world.settings(
        policy=Policy(files=(str(file),)), trial=trial or Trial(), commands=commands or Commands()
    )
    return world.reeve(settings=settings, approve=person)


@pytest.fixture
def repository(world: World) -> Path:
    root = world.workspace
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("build/\n")
    (root / "a.txt").write_text("one\n")
    return root


async def test_what_a_rule_allows_is_kept_with_its_build_output_and_can_be_undone(
    world: World, repository: Path
) -> None:
    before = snapshot(repository)
    code = (
        "import os\nos.makedirs('build/deep'); open('build/deep/out', 'w').write('x'); open('a.txt', 'w').write('two')"
    )
    async with allowing(world) as reeve:
        result = await reeve.call("bash", {"command": RUN.format(code)})
        after = snapshot(repository)
        undone = await reeve.undo(last=True)

    assert result.success, result.to_text()
    meta = result.meta.to_dict()
    assert (meta["runs"], meta["trial"]["outcome"], meta["decision"]["rule"]) == ("work", "kept", "commands")
    assert (after["a.txt"][1], after["build/deep/out"][1]) == (b"two", b"x")
    assert undone.success, undone.to_text()
    assert snapshot(repository) == before


async def test_times_that_a_command_sets_are_kept(world: World, repository: Path) -> None:
    async with allowing(world) as reeve:
        await reeve.call("bash", {"command": "touch -d 2020-01-01T00:00:00Z a.txt"})

    assert (repository / "a.txt").stat().st_mtime == 1577836800


async def test_what_a_person_approved_beforehand_can_be_undone(world: World, repository: Path) -> None:
    rules = "rules:\n  - {id: every, decision: ask, tool: bash}\n"
    person = Person(agrees=True)
    async with allowing(world, rules, person=person) as reeve:
        result = await reeve.call("bash", {"command": RUN.format("open('a.txt', 'w').write('two')")})
        assert (repository / "a.txt").read_text() == "two"
        await reeve.undo(last=True)

    assert (repository / "a.txt").read_text() == "one\n"
    assert (result.meta.approved_by, [question.tool for question in person.questions]) == ("callback", ["bash", "undo"])
    assert "undone" not in person.questions[0].verdict.reason


async def test_a_failed_command_leaves_what_it_changed_as_it_would_without_layers(
    world: World, repository: Path
) -> None:
    async with allowing(world) as reeve:
        result = await reeve.call("bash", {"command": "echo two > a.txt; exit 3"})

    assert result.error is not None
    assert result.error.code is ErrorCode.TOOL_EXEC
    assert (repository / "a.txt").read_text() == "two\n"


async def test_changes_that_a_rule_denies_are_discarded_whoever_allowed_the_command(
    world: World, repository: Path
) -> None:
    (repository / "frozen").mkdir()
    command = RUN.format("open('a.txt', 'w'); open('fro' + 'zen/x', 'w'); print('ran')")
    before = snapshot(repository)
    async with allowing(world, DENY) as reeve:
        result = await reeve.call("bash", {"command": command})

    assert result.error is not None, result.to_text()
    assert (result.error.code, (result.meta.trial or {})["outcome"]) == (ErrorCode.DENIED, "dropped")
    assert (result.output, result.meta.verdict.rule) == ("ran\n", "frozen")
    assert snapshot(repository) == before


async def test_a_command_whose_changes_cannot_be_committed_does_not_run_again(world: World, repository: Path) -> None:
    """Another program has the file open for writing."""
    code = "open('a.txt', 'w').write('theirs'); print('ran')"
    async with allowing(world) as reeve:
        with (repository / "a.txt").open("r+") as file:
            result = await reeve.call("bash", {"command": RUN.format(code)})
            file.write("mine")

    assert result.error is not None, result.to_text()
    assert result.error.code is ErrorCode.WRITE_ERROR
    assert result.error.message.endswith("Nothing was changed")
    assert (result.output, (result.meta.trial or {})["outcome"]) == ("ran\n", "dropped")
    assert (repository / "a.txt").read_text() == "mine"


async def test_what_does_not_fit_into_a_layer_runs_without_one_and_says_so(world: World, repository: Path) -> None:
    (repository / "big").write_bytes(bytes(3 << 20))
    code = "f = open('big', 'r+b'); f.write(b'x')"
    async with allowing(world, trial=Trial(layer_mb=2)) as reeve:
        result = await reeve.call("bash", {"command": RUN.format(code)})

    assert result.success, result.to_text()
    assert (repository / "big").read_bytes()[:1] == b"x"
    assert "this cannot be undone: it changes more than a trial can hold" in result.to_text()


@pytest.mark.parametrize(
    ("command", "trial", "commands"),
    [
        ("curl http://127.0.0.1:9/", Trial(), Commands(network="guarded")),
        (RUN.format("print(1)"), Trial(use="off"), Commands()),
        (RUN.format("print(1)"), Trial(use="unchanged"), Commands()),
        (RUN.format("print(1)"), Trial(), Commands(network="guarded")),
    ],
)
async def test_the_question_says_what_cannot_be_undone(
    world: World, repository: Path, command: str, trial: Trial, commands: Commands
) -> None:
    person = Person(agrees=False)
    rules = "rules:\n  - {id: every, decision: ask, tool: bash}\n"
    async with allowing(world, rules, person=person, trial=trial, commands=commands) as reeve:
        await reeve.call("bash", {"command": command})

    (question,) = person.questions
    assert "; cannot be undone" in question.verdict.reason


async def test_what_was_allowed_for_real_sees_sensitive_files_over_layers_too(world: World, repository: Path) -> None:
    (repository / "credentials.json").write_text("{}")
    code = "print(open('cred' + 'entials.json').read()); open('a.txt', 'w').write('two')"
    async with allowing(world) as reeve:
        result = await reeve.call("bash", {"command": RUN.format(code)})

    assert result.success, result.to_text()
    assert (result.output, (result.meta.trial or {})["outcome"]) == ("{}\n", "kept")
