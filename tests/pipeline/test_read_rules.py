"""Rules about reading and trials: the sandbox hides what they guard."""

from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.test_confinement import Person
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import ToolResult
from toolreeve.core.trial import Confinement
from toolreeve.policy.rules import PermissionRule
from toolreeve.sandbox.integrity import monitor

SECRET = "the recipe"
READ = "python3 - <<'EOF'\n{}\nEOF"
"""Code that the analysis cannot know."""


def guarding(decision: str, **target: Any) -> PermissionRule:
    return PermissionRule(id="guard", decision=decision, effect="read", target=target)


async def run(reeve: Toolreeve, code: str) -> ToolResult:
    return await reeve.call("bash", command=READ.format(code))


@pytest.fixture
def private(world: World) -> Path:
    folder = world.workspace / "private"
    (folder / "deep").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt"):
        (folder / name).write_text(SECRET)
    return folder


async def test_other_files_are_read_unasked_where_a_rule_guards_some(world: World, private: Path) -> None:
    (world.workspace / "open.txt").write_text("open")
    person = Person(agrees=False)
    async with world.reeve(approve=person, policy=[guarding("deny", under="private")]) as reeve:
        result = await run(reeve, "print(open('open.txt').read())")

    assert (result.output, person.questions) == ("open\n", [])


def spell(name: str) -> str:
    """A name in code, so that no deny finds it in the text of the command."""
    return f"bytes.fromhex('{name.encode().hex()}').decode()"


START = f"import os, shutil\np, a, b = {spell('private')}, {spell('private/a.txt')}, {spell('deep/b.txt')}\n"
WAYS = {
    "by its name": "print(open(a).read())",
    "by a link": "os.symlink(p, 'x'); print(open('x/' + b).read())",
    "by a hard link": "os.link(a, 'x'); print(open('x').read())",
    "renamed": "os.rename(p, 'x'); print(open('x/' + b).read())",
    "its file renamed": "os.rename(a, 'x'); print(open('x').read())",
    "by all names": "print([open(os.path.join(d, f)).read() for d, _, fs in os.walk('.') for f in fs])",
    "by a descriptor": "d = os.open(p, os.O_PATH); print(open('/proc/self/fd/%d/' % d + b).read())",
    "after a change of mode": "os.chmod(p, 0o777); print(open(a).read())",
    "copied": "shutil.copytree(p, 'x'); print(open('x/' + b).read())",
    "replaced": "shutil.rmtree(p); print(os.listdir(p))",
    "by another process": "print(open('/proc/1/cwd/' + a).read(), open('/proc/1/root' + os.getcwd() + '/' + a).read())",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "target", [{"under": "private"}, {"glob": "private/**"}, {"glob": ["**/a.txt", "**/b.txt"]}], ids=str
)
async def test_a_command_cannot_read_what_a_rule_guards(
    world: World, private: Path, way: str, target: dict[str, Any]
) -> None:
    person = Person(agrees=False)
    async with world.reeve(approve=person, policy=[guarding("deny", **target)]) as reeve:
        result = await run(reeve, START + WAYS[way])

    assert result.meta.runs is Confinement.TRY
    assert SECRET not in str(result.to_dict())
    assert (private / "a.txt").read_text() == SECRET


async def test_a_denied_read_is_refused_and_nobody_is_asked_to_lift_it(world: World, private: Path) -> None:
    person = Person(agrees=True)
    async with world.reeve(approve=person, policy=[guarding("deny", under="private")]) as reeve:
        result = await run(reeve, f"{START}print(open(a).read())")

    assert result.error is not None
    assert result.error.code is ErrorCode.DENIED
    assert f"{private}" in result.error.message
    assert person.questions == []


async def test_what_a_rule_asks_about_is_read_after_a_yes(world: World, private: Path) -> None:
    person = Person(agrees=True)
    async with world.reeve(approve=person, policy=[guarding("ask", under="private")]) as reeve:
        result = await run(reeve, "print(open('private/a.txt').read())")

    assert SECRET in result.output
    (question,) = person.questions
    assert "rules keep that from commands that nobody approved" in question.verdict.reason


async def test_a_file_that_is_made_later_is_hidden_too(world: World, private: Path) -> None:
    person = Person(agrees=False)
    async with world.reeve(approve=person, policy=[guarding("deny", glob="**/*.secret")]) as reeve:
        await run(reeve, "print(1)")
        (private / "late.secret").write_text(SECRET)
        (private / "deep/b.txt").rename(private / "deep/b.secret")
        names = map(spell, ("private/late.secret", "private/deep/b.secret"))
        results = [await run(reeve, f"print(open({name}).read())") for name in names]

    assert [result.meta.runs for result in results] == [Confinement.TRY] * 2
    assert [SECRET in str(result.to_dict()) for result in results] == [False, False]


@pytest.mark.parametrize("target", [{"regex": "secret"}, {"under": "/usr"}, {"glob": "**"}], ids=str)
async def test_where_covers_cannot_enforce_a_rule_the_person_is_asked_beforehand(
    world: World, private: Path, target: dict[str, Any]
) -> None:
    person = Person(agrees=False)
    async with world.reeve(approve=person, policy=[guarding("ask", **target)]) as reeve:
        await run(reeve, "print(1)")

    assert "it may read what the rule 'guard' guards" in person.questions[0].verdict.reason


async def test_a_rule_that_names_too_many_files_is_asked_about_beforehand(
    world: World, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "MOST_UNREAD", 1)
    person = Person(agrees=False)
    async with world.reeve(approve=person, policy=[guarding("ask", glob=["**/a.txt", "**/b.txt"])]) as reeve:
        await run(reeve, "print(1)")

    assert "it may read what the rule 'guard' guards" in person.questions[0].verdict.reason
