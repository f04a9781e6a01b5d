"""The road of a call that runs on trial: what it changed decides whether anyone is asked."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from tests.callers import PlainCaller
from tests.pipeline.test_confinement import Person, snapshot
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.approval.prompt import describe
from toolreeve.approval.request import Answer, Request
from toolreeve.config import Policy, Trial
from toolreeve.config.sections.policy import Mode
from toolreeve.confinement import held_trials
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.errors import ErrorCode
from toolreeve.core.peer import PriorAnswer
from toolreeve.core.process import ProcessRequest
from toolreeve.core.result import ToolResult
from toolreeve.core.trial import Confinement
from toolreeve.policy.rules import PermissionRule
from toolreeve.sandbox.kernel import syscalls
from toolreeve.sandbox.session import SandboxSession
from toolreeve.sandbox.trials import Started, Trials

RUN = "python3 - <<'EOF'\n{}\nEOF"
"""Code that the analysis cannot know."""


async def run(
    world: World, code: str, person: Person | None = None, *, mode: Mode = "default", trial: Trial | None = None
) -> ToolResult:
    settings = world.settings(policy=Policy(mode=mode), trial=trial or Trial())
    async with world.reeve(settings=settings, approve=person) as reeve:
        return await reeve.call("bash", {"command": RUN.format(code)})


@contextmanager
def mounted(place: Path) -> Iterator[None]:
    """A file system of its own at a place. Needs root, as the tests that run the sandbox as root do."""
    place.mkdir()
    syscalls.mount("tmpfs", str(place), "tmpfs")
    try:
        yield
    finally:
        syscalls.unmount(str(place))


@pytest.fixture
def repository(world: World) -> Path:
    root = world.workspace
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("build/\n*.log\n")
    (root / "a.txt").write_text("one\n")
    return root


def track(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("committed")
    subprocess.run(["git", "-C", str(root), "add", *paths], check=True)


async def test_a_command_that_changes_nothing_is_answered_unasked(world: World, repository: Path) -> None:
    person = Person(agrees=False)
    before = snapshot(repository)

    result = await run(world, "print(open('a.txt').read())", person)

    assert result.success, result.to_text()
    assert (result.output, person.questions) == ("one\n\n", [])
    meta = result.meta.to_dict()
    assert (meta["runs"], meta["trial"]) == ("try", {"outcome": "unchanged", "changes": 0})
    assert snapshot(repository) == before


async def test_scratch_is_discarded_unasked(world: World, repository: Path) -> None:
    person = Person(agrees=True)
    before = snapshot(repository)
    code = "import os\nfor p in ('build/deep', '__pycache__'): os.makedirs(p)\n"
    code += "for p in ('build/deep/x', '__pycache__/a.cpython-311.pyc', 'run.log'): open(p, 'w').write('x')"

    result = await run(world, code, person)

    assert result.success, result.to_text()
    assert person.questions == []
    ignored = ["build/deep/x", "run.log"]
    assert result.meta.trial == {"outcome": "unchanged", "changes": 0, "scratch": 3, "ignored": ignored}
    assert "[discarded, because git ignores it: build/deep/x, run.log]" in result.to_text()
    assert snapshot(repository) == before


async def test_plan_mode_tries_and_always_discards(world: World, repository: Path) -> None:
    person = Person(agrees=True)
    before = snapshot(repository)

    result = await run(world, "open('a.txt', 'w').write('two'); print('done')", person, mode="plan")

    assert result.success, result.to_text()
    assert result.output == "done\n"
    assert result.meta.trial is not None
    assert (result.meta.trial["outcome"], result.meta.trial["changes"]) == ("dropped", 1)
    assert f"this would change {repository}/a.txt" in result.to_text()
    assert (snapshot(repository), person.questions) == (before, [])


async def test_a_failed_command_is_settled_like_any_other(world: World, repository: Path) -> None:
    result = await run(world, "raise SystemExit('no')", Person(agrees=False))

    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.TOOL_EXEC, "exit code 1: no")
    assert result.meta.trial == {"outcome": "unchanged", "changes": 0}


async def test_strict_mode_and_switched_off_trials_ask_beforehand(world: World, repository: Path) -> None:
    person = Person(agrees=False)

    strict = await run(world, "print(1)", person, mode="strict")
    off = await run(world, "print(1)", person, trial=Trial(use="off"))

    assert [result.error.code for result in (strict, off) if result.error] == [
        ErrorCode.DENIED,
        ErrorCode.APPROVAL_DENIED,
    ]
    assert (strict.meta.trial, off.meta.trial) == (None, None)
    assert len(person.questions) == 1


async def test_more_than_a_layer_holds_is_asked_about_beforehand(world: World, repository: Path) -> None:
    person = Person(agrees=False)
    (repository / "big").write_bytes(bytes(3 << 20))

    result = await run(world, "f = open('big', 'r+b'); f.write(b'x')", person, trial=Trial(layer_mb=2))

    assert result.error is not None
    assert result.error.code is ErrorCode.APPROVAL_DENIED
    (question,) = person.questions
    assert "trial.layer_mb" in question.verdict.reason
    assert (repository / "big").read_bytes() == bytes(3 << 20)


async def test_a_trial_has_a_timeout_of_its_own(world: World, repository: Path) -> None:
    person = Person(agrees=False)

    await run(world, "import time; time.sleep(20)", person, trial=Trial(seconds=0.3))

    (question,) = person.questions
    assert "trial.seconds = 0.3" in question.verdict.reason


async def test_a_mount_inside_the_workspace_leaves_the_question_as_it_was(world: World, repository: Path) -> None:
    person = Person(agrees=False)
    with mounted(repository / "disk"):
        result = await run(world, "print(1)", person)

    assert result.error is not None
    assert len(person.questions) == 1


async def test_what_is_hidden_stays_hidden_on_trial(world: World, repository: Path) -> None:
    (repository / ".env").write_text("TOKEN=very-secret")

    result = await run(world, "print(open('.env').read())", Person(agrees=False))

    assert result.error is not None
    assert "very-secret" not in result.to_text()
    assert "PermissionError" in result.to_text()


async def test_nothing_of_one_trial_is_found_by_the_next(world: World, repository: Path) -> None:
    leave = "import os; open(os.environ['HOME'] + '/.gitconfig', 'w').write('x'); open('/tmp/left', 'w')"
    find = "import os; print(os.listdir('/tmp'), os.listdir(os.environ['HOME']), os.listdir('/dev/shm'))"
    async with world.reeve(approve=Person(agrees=False)) as reeve:
        first = await reeve.call("bash", {"command": RUN.format(leave)})
        second = await reeve.call("bash", {"command": RUN.format(find)})

    assert first.success, first.to_text()
    assert "left" not in second.output
    assert second.output.endswith(" [] []\n")


async def test_a_question_about_changes_shows_them(world: World, repository: Path) -> None:
    person = Person(agrees=False)
    before = snapshot(repository)

    result = await run(world, "open('a.txt', 'w').write('two\\n'); open('new.py', 'w').write('x = 1\\n')", person)

    (question,) = person.questions
    assert question.preview.splitlines()[:2] == ["M a.txt", "A new.py"]
    assert "-one\n+two" in question.preview
    assert question.verdict.reason == "The command would change 2 files"
    assert result.error is not None
    assert result.error.code is ErrorCode.APPROVAL_DENIED
    assert result.error.message.endswith("Nothing was changed")
    assert result.to_text().lower().count("nothing was changed") == 1
    assert result.meta.trial is not None
    assert result.meta.trial["outcome"] == "dropped"
    assert snapshot(repository) == before


async def test_a_yes_keeps_exactly_the_bytes_that_were_shown(world: World, repository: Path) -> None:
    """A second run would write something else."""
    person = Person(agrees=True)

    result = await run(world, "import time; open('a.txt', 'w').write(str(time.time_ns()))", person)

    assert result.success, result.to_text()
    (question,) = person.questions
    assert f"+{(repository / 'a.txt').read_text()}" in question.preview
    meta = result.meta.to_dict()
    assert (meta["runs"], meta["trial"]["outcome"], meta["trial"]["changes"]) == ("try", "kept", 1)
    assert (result.meta.approved_by, len(meta["trial"]["manifest"])) == ("callback", 64)


async def test_where_nobody_can_be_asked_the_changes_are_discarded(world: World, repository: Path) -> None:
    before = snapshot(repository)

    result = await run(world, "open('a.txt', 'w').write('two'); print('ran')")

    assert snapshot(repository) == before
    assert result.error is not None
    assert (result.error.code, result.output) == (ErrorCode.PERMISSION, "ran\n")
    assert f"The command would change {repository}/a.txt, and nobody can be asked" in result.error.message


async def test_use_unchanged_asks_as_if_nothing_had_run(world: World, repository: Path) -> None:
    person = Person(agrees=True)

    result = await run(world, "open('a.txt', 'a').write('two')", person, trial=Trial(use="unchanged"))

    assert (repository / "a.txt").read_text() == "one\ntwo"
    assert (result.meta.to_dict()["runs"], len(person.questions)) == ("work", 1)


async def test_a_change_made_meanwhile_in_the_workspace_is_never_overwritten(world: World, repository: Path) -> None:
    class Editor(Person):
        async def __call__(self, request: Request) -> bool:
            if not self.questions:
                (repository / "a.txt").write_text("mine\n")
            self.questions.append(request)
            return len(self.questions) == 1

    person = Editor(agrees=True)

    await run(world, "open('a.txt', 'w').write('two')", person)

    assert (repository / "a.txt").read_text() == "mine\n"
    assert len(person.questions) == 2
    assert "tried before" in person.questions[1].verdict.reason


async def test_accepted_edits_are_kept_unasked(world: World, repository: Path) -> None:
    person = Person(agrees=False)

    result = await run(world, "open('new.txt', 'w').write('two')", person, mode="accept_edits")

    assert result.success, result.to_text()
    assert ((repository / "new.txt").read_text(), person.questions) == ("two", [])


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("shutil.rmtree('kept')", "kept/new.txt, which version control cannot restore"),
        ("shutil.rmtree('kept'); os.mkdir('kept')", "kept/new.txt, which version control cannot restore"),
        ("shutil.rmtree('kept'); open('kept', 'w')", "kept/new.txt, which version control cannot restore"),
        ("shutil.rmtree('kept'); os.symlink('.', 'kept')", "kept/new.txt, which version control cannot restore"),
        ("shutil.rmtree('kept'); os.link('a.txt', 'kept')", "kept/new.txt, which version control cannot restore"),
        ("os.remove('edited.txt')", "edited.txt, which version control cannot restore"),
        ("os.remove('a.txt'); os.symlink('edited.txt', 'a.txt')", "a.txt, which version control cannot restore"),
        ("shutil.rmtree('many')", "delete 11 files"),
        ("shutil.rmtree('many'); os.mkdir('many')", "delete 11 files"),
    ],
)
async def test_files_that_go_with_a_directory_are_counted_one_by_one(
    world: World, repository: Path, code: str, reason: str
) -> None:
    """Otherwise accept_edits would delete any number of files that nobody else has, as one change."""
    track(repository, "kept/old.txt", "edited.txt", *(f"many/{number}" for number in range(11)))
    (repository / "kept/new.txt").write_text("nowhere else")
    (repository / "edited.txt").write_text("edited since")
    person = Person(agrees=False)
    before = snapshot(repository)

    await run(world, f"import os, shutil\n{code}", person, mode="accept_edits")

    (question,) = person.questions
    assert reason in question.verdict.reason
    assert snapshot(repository) == before


async def test_a_directory_that_is_made_again_deletes_only_what_is_missing(world: World, repository: Path) -> None:
    (repository / "site").mkdir()
    (repository / "site/index").write_text("one")
    person = Person(agrees=False)
    code = "import os, shutil\nshutil.rmtree('site'); os.mkdir('site'); open('site/index', 'w').write('two')"

    await run(world, code, person, mode="accept_edits")

    assert ((repository / "site/index").read_text(), person.questions) == ("two", [])


@pytest.mark.parametrize("command", ["touch made.txt", RUN.format("open('made.txt', 'w')")])
async def test_what_a_viewer_changes_is_never_kept_unasked(world: World, repository: Path, command: str) -> None:
    person = Person(agrees=False)
    viewer = Principal(user="guest", role=Role.VIEWER)
    settings = world.settings(policy=Policy(mode="accept_edits"))
    async with world.reeve(settings=settings, approve=person) as reeve:
        await reeve.run(ToolCall(tool="bash", args={"command": command}, session="s", principal=viewer))

    (question,) = person.questions
    assert "the caller may only look" in question.verdict.reason
    assert not (repository / "made.txt").exists()


async def test_a_rule_against_deleting_holds_for_a_directory_that_is_replaced(world: World, repository: Path) -> None:
    (repository / "kept").mkdir()
    (repository / "kept/f").write_text("one")
    rule = PermissionRule(decision="deny", effect="delete", target={"under": ["kept"]})
    code = "import os, shutil\nshutil.rmtree('kept'); os.link('a.txt', 'kept')"

    async with world.reeve(policy=[rule], approve=Person(agrees=True)) as reeve:
        result = await reeve.call("bash", {"command": RUN.format(code)})

    assert result.error is not None
    assert result.error.code is ErrorCode.DENIED
    assert (repository / "kept/f").read_text() == "one"


async def test_what_a_command_changed_is_undone_like_a_file_tool(world: World, repository: Path) -> None:
    before = snapshot(repository)
    code = "import os\nos.remove('a.txt'); os.makedirs('made/deep'); open('made/deep/f', 'w').write('x')"
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        kept = await reeve.call("bash", {"command": RUN.format(code)})
        after = snapshot(repository)
        undone = await reeve.call("undo", {"call_id": kept.meta.call_id})

    assert kept.success, kept.to_text()
    assert set(after) ^ set(before) == {"a.txt", "made", "made/deep", "made/deep/f"}
    assert undone.success, undone.to_text()
    assert snapshot(repository) == before


@pytest.mark.parametrize("place", ["a.txt", "folder"])
async def test_a_link_that_leads_out_is_undone_as_well(world: World, repository: Path, place: str) -> None:
    """Otherwise one link would keep everything that a command changed from being undone."""
    (repository / "folder").mkdir()
    (repository / "folder/f").write_text("x")
    before = snapshot(repository)
    code = f"import os, shutil\nshutil.rmtree('folder'); os.remove('a.txt'); os.symlink('/etc', '{place}')"
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        kept = await reeve.call("bash", {"command": RUN.format(code)})
        led = (repository / place).is_symlink()
        undone = await reeve.call("undo", {"call_id": kept.meta.call_id})

    assert led
    assert undone.success, undone.to_text()
    assert snapshot(repository) == before


class Repeating:
    """A client that is asked with the result of its call, and repeats the call with the answer."""

    def __init__(self, reeve: Toolreeve, caller: PlainCaller) -> None:
        self.reeve = reeve
        self.caller = caller

    async def call(self, code: str) -> ToolResult:
        args = {"command": RUN.format(code)}
        return await self.reeve.run(ToolCall(tool="bash", args=args, session="s", peer=self.caller))

    def answer(self, read: Callable[[Request], Answer]) -> None:
        question = self.caller.requests[-1]
        self.caller.decision = PriorAnswer(binding=question.binding, question=question.id, asked=0, read=read)


@pytest.fixture
async def repeating(world: World, repository: Path) -> AsyncIterator[Repeating]:
    async with world.reeve() as reeve:
        yield Repeating(reeve, PlainCaller(defers=True))


NOW = "import time; open('a.txt', 'w').write(str(time.time_ns())); open('b.txt', 'w').write('b'); print('ran')"
"""Writes other bytes each time."""


async def test_a_client_that_repeats_its_call_keeps_what_it_was_shown_and_nothing_runs_again(
    repeating: Repeating, repository: Path
) -> None:
    deferred = await repeating.call(NOW)
    unanswered = await repeating.call(NOW)
    after_trials = (repository / "a.txt").read_text()
    first, second = repeating.caller.requests
    repeating.answer(lambda request: request.allow())
    repeated = await repeating.call(NOW)

    assert [each.error.code for each in (deferred, unanswered) if each.error] == [ErrorCode.APPROVAL_PENDING] * 2
    assert (after_trials, first.binding) == ("one\n", second.binding)
    assert repeated.success, repeated.to_text()
    assert (repeated.output, repeated.meta.runs) == ("ran\n", Confinement.TRY)
    assert (repository / "a.txt").read_text() in first.preview


async def test_a_client_that_repeats_its_call_may_keep_some(repeating: Repeating, repository: Path) -> None:
    await repeating.call(NOW)
    repeating.answer(lambda request: request.allow(only=["b.txt"]))
    repeated = await repeating.call(NOW)

    assert repeated.success, repeated.to_text()
    assert ((repository / "a.txt").read_text(), (repository / "b.txt").read_text()) == ("one\n", "b")


async def test_a_refused_trial_is_not_held(repeating: Repeating, repository: Path) -> None:
    before = snapshot(repository)
    await repeating.call(NOW)
    repeating.answer(lambda request: request.deny(note="no"))
    refused = await repeating.call(NOW)
    again = await repeating.call(NOW)

    assert [each.error.code for each in (refused, again) if each.error] == [
        ErrorCode.APPROVAL_DENIED,
        ErrorCode.APPROVAL_PENDING,
    ]
    bindings = {request.binding for request in repeating.caller.requests}
    assert len(bindings) == 2
    assert snapshot(repository) == before


async def test_a_held_trial_is_dropped_for_newer_ones_and_its_answer_does_not_fit_another(
    repeating: Repeating, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_trials, "MOST_HELD", 1)
    await repeating.call(NOW)
    repeating.answer(lambda request: request.allow())
    answer, repeating.caller.decision = repeating.caller.decision, None
    await repeating.call("open('c.txt', 'w').write('c')")
    repeating.caller.decision = answer
    repeated = await repeating.call(NOW)

    assert repeated.error is not None
    assert repeated.error.code is ErrorCode.APPROVAL_PENDING
    assert (repository / "a.txt").read_text() == "one\n"


async def test_a_file_that_changed_meanwhile_is_not_overwritten_by_a_held_trial(
    repeating: Repeating, repository: Path
) -> None:
    await repeating.call(NOW)
    (repository / "a.txt").write_text("by hand\n")
    repeating.answer(lambda request: request.allow())
    repeated = await repeating.call(NOW)

    assert not repeated.success
    assert (repository / "a.txt").read_text() == "by hand\n"


async def test_a_command_that_filled_a_layer_does_not_run_on_trial_again(
    world: World, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = Trials.start

    async def counting(trials: Trials, call: str, session: SandboxSession, request: ProcessRequest) -> Started:
        started.append(call)
        return await start(trials, call, session, request)

    monkeypatch.setattr(Trials, "start", counting)
    code = "open('big', 'wb').write(bytes(4 << 20))"
    args = {"command": RUN.format(code)}
    person = Person(agrees=True)
    async with world.reeve(settings=world.settings(trial=Trial(layer_mb=2)), approve=person) as reeve:
        first = await reeve.call("bash", args)
        (repository / "big").unlink()
        second = await reeve.call("bash", args)

    assert (first.success, second.success) == (True, True)
    assert started == [first.meta.call_id]
    assert ["trial.layer_mb" in question.verdict.reason for question in person.questions] == [True, True]


async def test_a_full_layer_counts_even_if_the_command_goes_on(world: World, repository: Path) -> None:
    (repository / "big").write_bytes(bytes(4 << 20))
    person = Person(agrees=False)
    code = "import sys\ntry: open('big', 'r+b').write(b'x')\nexcept OSError as problem: print(problem, file=sys.stderr)"

    result = await run(world, code, person, trial=Trial(layer_mb=2))

    [question] = person.questions
    assert "trial.layer_mb" in question.verdict.reason
    assert result.error is not None


@pytest.mark.parametrize(("use", "is_final"), [("ask", False), ("off", True)])
async def test_the_question_says_where_a_yes_cannot_be_undone(
    world: World, repository: Path, use: Literal["ask", "off"], is_final: bool
) -> None:
    person = Person(agrees=True)

    await run(world, "open('a.txt', 'a').write('two')", person, trial=Trial(use=use))

    [question] = person.questions
    assert ("cannot be undone" in describe(question)) is is_final
    assert (repository / "a.txt").read_text() == "one\ntwo"


async def choose(world: World, code: str, only: list[str]) -> ToolResult:
    async def answer(request: Request) -> Answer:
        return request.allow(only=only)

    async with world.reeve(approve=answer) as reeve:
        return await reeve.call("bash", {"command": RUN.format(code)})


THREE = "import os\nos.makedirs('pkg')\nfor p in ('a.txt', 'pkg/m.py', 'pkg/n.py', 'other'): open(p, 'w').write('new')"


async def test_some_of_the_changes_are_kept_and_the_rest_is_discarded(world: World, repository: Path) -> None:
    result = await choose(world, THREE, ["a.txt", str(repository / "pkg/m.py")])

    assert result.success, result.to_text()
    assert (repository / "a.txt").read_text() == "new"
    assert [path.name for path in sorted((repository / "pkg").iterdir())] == ["m.py"]
    assert not (repository / "other").exists()
    assert result.meta.trial is not None
    assert result.meta.trial["discarded"] == [f"{repository}/other", f"{repository}/pkg/n.py"]
    assert f"discarded by choice: {repository}/other, {repository}/pkg/n.py" in result.to_text()


async def test_a_folder_chooses_what_was_changed_below_it(world: World, repository: Path) -> None:
    result = await choose(world, THREE, ["pkg"])

    assert result.success, result.to_text()
    assert [path.name for path in sorted((repository / "pkg").iterdir())] == ["m.py", "n.py"]
    assert (repository / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("only", [["nowhere"], ["a.txt", "../a.txt"], [], ["/etc/passwd"]])
async def test_a_choice_of_what_was_not_changed_keeps_nothing(world: World, repository: Path, only: list[str]) -> None:
    before = snapshot(repository)

    result = await choose(world, THREE, only)

    assert result.error is not None
    assert result.error.code is ErrorCode.APPROVAL_DENIED
    assert snapshot(repository) == before


async def test_a_choice_of_changes_is_never_widened_to_a_run_without_layers(world: World, repository: Path) -> None:
    """It was asked about beforehand, because it may leave a process behind."""

    async def answer(request: Request) -> Answer:
        return request.allow(only=["a.txt"])

    async with world.reeve(approve=answer) as reeve:
        result = await reeve.call("bash", {"command": "nohup true ; echo x > other"})
        written = await reeve.call("write_file", {"path": "other", "content": "x"})

    assert [each.error.code for each in (result, written) if each.error] == [ErrorCode.APPROVAL_DENIED] * 2
    assert not (repository / "other").exists()


async def test_a_command_that_needs_the_network_is_refused_at_once_where_there_is_none(world: World) -> None:
    person = Person(agrees=True)
    async with world.reeve(approve=person) as reeve:
        result = await reeve.call("bash", {"command": "pip download requests"})

    assert result.error is not None
    assert result.error.code is ErrorCode.DENIED
    assert 'commands.network = "none"' in result.error.message
    assert person.questions == []


async def test_an_installation_of_what_is_there_works_without_a_network(world: World, repository: Path) -> None:
    (repository / ".gitignore").write_text("node_modules/\n")
    (repository / "package.json").write_text('{"name": "a", "version": "1.0.0", "dependencies": {"b": "file:./b"}}')
    (repository / "b").mkdir()
    (repository / "b/package.json").write_text('{"name": "b", "version": "1.0.0"}')
    run_process = asyncio.create_subprocess_exec("npm", "install", "--no-audit", cwd=repository)
    assert await (await run_process).wait() == 0
    before = snapshot(repository)
    person = Person(agrees=False)
    async with world.reeve(approve=person) as reeve:
        result = await reeve.call("bash", {"command": "npm install --no-audit"})

    assert result.success, result.to_text()
    assert "up to date" in result.output
    assert (result.meta.runs, person.questions, snapshot(repository)) == (Confinement.TRY, [], before)


async def test_an_installation_that_a_trial_would_discard_is_asked_about(world: World, repository: Path) -> None:
    (repository / ".gitignore").write_text("node_modules/\n")
    (repository / "package.json").write_text('{"name": "a", "version": "1.0.0", "dependencies": {"b": "file:./b"}}')
    (repository / "b").mkdir()
    (repository / "b/package.json").write_text('{"name": "b", "version": "1.0.0"}')
    person = Person(agrees=True)
    async with world.reeve(approve=person) as reeve:
        result = await reeve.call("bash", {"command": "npm install --no-audit"})

    assert result.success, result.to_text()
    (question,) = person.questions
    assert "it installs what a trial discards" in question.verdict.reason
    assert (repository / "node_modules/b/package.json").exists()
    assert (repository / "package-lock.json").exists()


async def test_an_installation_of_what_is_missing_says_that_there_is_no_network(world: World, repository: Path) -> None:
    (repository / "package.json").write_text('{"name": "a", "version": "1.0.0", "dependencies": {"left-pad": "1.3.0"}}')
    person = Person(agrees=True)
    async with world.reeve(approve=person) as reeve:
        result = await reeve.call("bash", {"command": "npm install --no-audit"})

    assert result.error is not None
    assert 'commands.network = "none"' in result.to_text()
    assert person.questions == []


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    return subprocess.run(
        ["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True
    ).stdout.decode()


@pytest.mark.parametrize("name", [".env", "sub dir/[x].key", "secrets.json", ".aws/credentials"])
async def test_git_adds_everything_but_a_hidden_file_that_it_does_not_track(
    world: World, repository: Path, name: str
) -> None:
    hidden = repository / name
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_text("TOKEN=very-secret")
    person = Person(agrees=True)
    async with world.reeve(approve=person) as reeve:
        result = await reeve.call("bash", {"command": "git add -A && git status --short"})

    assert result.success, result.to_text()
    assert result.output == "A  .gitignore\nA  a.txt\n"
    assert git(repository, "ls-files").split() == [".gitignore", "a.txt"]
    assert hidden.read_text() == "TOKEN=very-secret"


@pytest.mark.parametrize("name", [".env", ".aws/credentials"])
async def test_git_neither_commits_nor_deletes_a_hidden_file_that_it_tracks(
    world: World, repository: Path, name: str
) -> None:
    hidden = repository / name
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_text("TOKEN=very-secret")
    os.utime(hidden, (1_000_000_000, 1_000_000_000))
    git(repository, "add", "-f", ".")
    git(repository, "commit", "-qm", "one")
    (repository / "a.txt").write_text("two\n")
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        command = "git add -A && git -c user.name=x -c user.email=x@y commit -qm two"
        result = await reeve.call("bash", {"command": command})

    assert result.success, result.to_text()
    assert git(repository, "show", "--stat", "--format=").split()[0] == "a.txt"
    assert git(repository, "show", f"HEAD:{name}") == "TOKEN=very-secret"
    assert git(repository, "status", "--short") == ""


async def test_a_full_layer_ends_the_trial_at_once(world: World, repository: Path) -> None:
    person = Person(agrees=False)
    code = """
import time
f = open('big', 'wb')
try:
    f.write(bytes(8 << 20)); f.flush()
except OSError:
    while True:
        time.sleep(1)
"""

    result = await run(world, code, person, trial=Trial(layer_mb=2))

    (question,) = person.questions
    assert "trial.layer_mb" in question.verdict.reason
    assert result.error is not None
    assert "(timeout)" not in str(result.to_dict())


async def test_a_file_that_is_larger_than_a_layer_is_asked_about_before_anything_runs(
    world: World, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trials, "start", None)
    (repository / "big").write_bytes(bytes(3 << 20))
    person = Person(agrees=False)
    async with world.reeve(settings=world.settings(trial=Trial(layer_mb=2)), approve=person) as reeve:
        await reeve.call("bash", {"command": "sed -i s/a/b/ big"})

    (question,) = person.questions
    assert f"it changes {repository / 'big'}, which is more than a trial can hold" in question.verdict.reason
