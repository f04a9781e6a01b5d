"""Rules about reading and trials: the sandbox hides what they guard."""

import subprocess
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


GIT = {
    "git show": "git show HEAD:private/a.txt",
    "git log": "git log -p",
    "git cat-file": "git cat-file --batch-all-objects --batch",
    "git archive": "git archive HEAD | tar xO",
    "git grep": "git grep . HEAD",
    "git clone": "git clone -q . x; cat x/private/a.txt",
    "git checkout": "GIT_WORK_TREE=/tmp git checkout HEAD -- .; cat /tmp/private/a.txt",
    "git worktree": "git worktree add -q /tmp/w; cat /tmp/w/private/a.txt",
    "git stash": "git stash show -p",
    "another place": "GIT_DIR=$PWD/.git/../.git git log -p",
    "alternates": "git init -q x; echo $PWD/.git/objects > x/.git/objects/info/alternates; git -C x log -p HEAD",
}


@pytest.fixture
def history(world: World, private: Path) -> Path:
    root = world.workspace
    git = ["git", "-C", str(root), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        subprocess.run([*git, *arguments], check=True)
    return private


@pytest.mark.parametrize("way", GIT)
@pytest.mark.parametrize("form", ["{}", "python3 -c 'import os; os.system(bytes.fromhex(\"{}\").decode())'"])
async def test_a_command_cannot_read_what_a_rule_guards_from_the_history(
    world: World, history: Path, way: str, form: str
) -> None:
    command = form.format(GIT[way] if form == "{}" else GIT[way].encode().hex())
    async with world.reeve(approve=Person(agrees=False), policy=[guarding("deny", under="private")]) as reeve:
        result = await reeve.call("bash", command=command)

    assert SECRET not in str(result.to_dict())


async def test_code_cannot_read_the_objects_of_git_where_a_rule_guards_files(world: World, history: Path) -> None:
    code = """
import os, zlib
for folder, _, names in os.walk('.git/objects'):
    for name in names:
        print(zlib.decompress(open(os.path.join(folder, name), 'rb').read()))
print('done')
"""
    async with world.reeve(approve=Person(agrees=False), policy=[guarding("deny", under="private")]) as reeve:
        result = await run(reeve, code)

    assert (result.output, result.meta.runs) == ("done\n", Confinement.TRY)


async def test_code_that_needs_the_history_is_asked_about_where_a_rule_guards_files(
    world: World, history: Path
) -> None:
    person = Person(agrees=True)
    async with world.reeve(approve=person, policy=[guarding("ask", under="private")]) as reeve:
        plain = await reeve.call("bash", command="git status --short; git log --oneline | wc -l")
        result = await run(reeve, "import subprocess; print(subprocess.check_output(['git', 'log', '--format=%s']))")

    assert plain.output.strip() == "1"
    assert result.output == "b'one\\n'\n"
    (question,) = person.questions
    assert "it uses the history of git" in question.verdict.reason


@pytest.mark.parametrize("made", ["before", "later", "in a new directory"])
@pytest.mark.parametrize("name", ["private/a.txt", "secrets.json", "sub/.env"])
async def test_another_name_of_a_guarded_file_is_hidden_too(world: World, private: Path, name: str, made: str) -> None:
    guarded = world.workspace / name
    guarded.parent.mkdir(exist_ok=True)
    guarded.write_text(SECRET)
    other = world.workspace / "notes.txt"
    if made == "in a new directory":
        other = world.workspace / "new/notes.txt"
    if made == "before":
        other.hardlink_to(guarded)
    read = f"print(open({str(other)!r}).read())"
    async with world.reeve(approve=Person(agrees=False), policy=[guarding("deny", glob="private/*.txt")]) as reeve:
        await run(reeve, "print(1)")
        if made != "before":
            other.parent.mkdir(exist_ok=True)
            other.hardlink_to(guarded)
        tried = await run(reeve, read)
        looked = await reeve.call("bash", command=f"cat {other}")

    assert [SECRET in str(result.to_dict()) for result in (tried, looked)] == [False, False]


async def test_a_file_that_was_another_name_is_seen_again(world: World, private: Path) -> None:
    other = world.workspace / "notes.txt"
    other.hardlink_to(private / "a.txt")
    async with world.reeve(approve=Person(agrees=False), policy=[guarding("deny", under="private")]) as reeve:
        hidden = await run(reeve, "print(open('notes.txt').read())")
        other.unlink()
        other.write_text("open")
        seen = await run(reeve, "print(open('notes.txt').read())")

    assert hidden.error is not None
    assert seen.output == "open\n"
