"""Commits of commands, undone like changes of file tools."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.trial.conftest import Project
from toolreeve.core.call import RecordScope, ToolCall
from toolreeve.core.errors import ToolError
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.record.blobs import Blobs
from toolreeve.record.store import Store
from toolreeve.record.undo import LONGEST_KEPT, Undo, UndoOutcome
from toolreeve.trial.commits import Commits
from toolreeve.trial.committer import Committer
from toolreeve.trial.layer_reader import read_layer


class CommandHistory:
    """A project whose commands and file tools are both kept for undo."""

    def __init__(self, project: Project, state: Path) -> None:
        self.project = project
        self.now = 1_700_000_000.0
        self.store = Store(state / "db")
        self.commits = Commits(state, lambda: self.now)
        blobs = Blobs(state / "undo", lambda: self.now)
        self.undo = Undo(self.store.changes, blobs, lambda: self.now, redact=str, commits=self.commits)
        self.files = WorkspaceFiles(project.root, keep=self.undo)
        self.committer = Committer(self.commits, self.undo.note)

    async def run(self, script: str) -> ToolCall:
        call = ToolCall(tool="bash", args={}, session="s")
        await self.committer.commit(call, [self.project.harvest(script)])
        return call

    async def write(self, name: str, text: str) -> ToolCall:
        call = ToolCall(tool="write_file", args={}, session="s")
        await self.files.write(call, name, text.encode())
        return call

    async def restore(self, call: ToolCall | None = None, *, force: bool = False) -> tuple[ToolCall, list[UndoOutcome]]:
        """Of one call, or of the whole session."""
        own = ToolCall(tool="undo", args={}, session="s", record_scope=RecordScope.ALL)
        call_id, session = (None, "s") if call is None else (call.id, None)
        outcomes = await self.undo.restore(own, self.files, call_id=call_id, session=session, force=force)
        return own, list(outcomes)


@pytest.fixture
async def history(project: Project, tmp_path: Path) -> AsyncIterator[CommandHistory]:
    made = CommandHistory(project, tmp_path / "state")
    (tmp_path / "state").mkdir()
    await made.store.start()
    yield made
    made.files.close()
    await made.store.close()


async def test_a_command_is_undone_like_a_file_tool(history: CommandHistory) -> None:
    before = history.project.listing()
    call = await history.run("echo >> a; rm -r src/old; mkdir new; echo > new/x; chmod 700 b")

    _, outcomes = await history.restore(call)

    assert history.project.listing() == before
    names = {os.path.relpath(each.path, history.project.root): each.outcome for each in outcomes}
    assert names == {**dict.fromkeys(("a", "b", "src/old"), "restored"), **dict.fromkeys(("new", "new/x"), "removed")}


async def test_an_undone_command_cannot_be_undone_twice_but_its_undo_can(history: CommandHistory) -> None:
    call = await history.run("echo >> a; echo > new")
    after = history.project.listing()
    undone, _ = await history.restore(call)

    with pytest.raises(ToolError, match="has no file changes"):
        await history.restore(call)
    again, _ = await history.restore(undone)

    assert history.project.listing() == after
    await history.restore(again)
    assert not (history.project.root / "new").exists()


async def test_a_session_of_commands_and_file_tools_is_undone_as_a_whole(history: CommandHistory) -> None:
    before = history.project.listing()
    await history.run("mkdir -p pkg/sub; echo 1 > pkg/m.py; echo 2 > pkg/sub/n.py; echo >> a")
    await history.write("pkg/m.py", "by a tool\n")
    await history.write("pkg/tool.py", "new, in a directory of a command\n")
    await history.run("sed -i s/tool/command/ pkg/m.py; rm pkg/tool.py; mv pkg/sub/n.py pkg/n.py")
    await history.run("rm -r pkg; echo >> a")
    await history.run("mkdir pkg; echo other > pkg/m.py")
    await history.write("a", "by a tool\n")

    await history.restore()

    assert history.project.listing() == before


@pytest.mark.parametrize(
    ("edit", "path", "reason"),
    [
        ("a", "a", "changed since"),
        ("new/x", "new/x", "changed since"),
        ("new/stranger", "new/stranger", "is new in a directory that would go"),
        ("b", "b", "another file is there now"),
    ],
)
async def test_nothing_is_undone_where_somebody_changed_a_file_since(
    history: CommandHistory, edit: str, path: str, reason: str
) -> None:
    call = await history.run("echo >> a; rm b; mkdir new; echo > new/x")
    history.project.write(edit, "theirs\n")
    listed = history.project.listing()

    with pytest.raises(ToolError) as refusal:
        await history.restore(call)

    assert f"{history.project.root}/{path}: {reason}. Nothing was changed" in refusal.value.message
    assert history.project.listing() == listed


async def test_forced_undo_restores_all_and_the_other_content_comes_back_by_undoing_it(history: CommandHistory) -> None:
    before = history.project.listing()
    call = await history.run("echo >> a; rm b; mkdir new; echo > new/x")
    history.project.write("a", "theirs\n")
    history.project.write("b", "theirs\n")
    edited = history.project.listing()

    forced, _ = await history.restore(call, force=True)
    undone = history.project.listing()
    await history.restore(forced, force=True)

    assert (undone, history.project.listing()) == (before, edited)


async def test_the_effects_of_an_undo_name_every_path(history: CommandHistory) -> None:
    call = await history.run("echo >> a; echo > new; rm b")

    changes = history.files.changes(call_id=call.id)

    root = history.project.root
    assert {each.path: each.before is None for each in changes} == {
        f"{root}/a": False,
        f"{root}/b": False,
        f"{root}/new": True,
    }


async def test_a_commit_that_conflicts_leaves_nothing_to_undo(history: CommandHistory) -> None:
    harvest = history.project.harvest("echo >> a")
    history.project.write("a", "theirs\n")
    call = ToolCall(tool="bash", args={}, session="s")

    with pytest.raises(ToolError, match="nothing was committed"):
        await history.committer.commit(call, [harvest])

    with pytest.raises(ToolError, match="has no file changes"):
        await history.restore(call)


async def test_former_content_is_kept_as_long_as_that_of_file_tools(history: CommandHistory) -> None:
    call = await history.run("rm -r src")
    history.now += LONGEST_KEPT - 60
    await history.undo.prune()
    assert list(history.commits.journal.phases()) != []

    history.now += 120
    await history.undo.prune()

    assert list(history.commits.journal.directory.iterdir()) == []
    with pytest.raises(ToolError, match="has no file changes"):
        await history.restore(call)


async def test_two_trees_are_committed_all_or_none(history: CommandHistory, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    second = Project(other)
    harvests = [history.project.harvest("echo >> a"), second.harvest("echo >> b")]
    second.write("b", "theirs\n")
    guards = GuardTable(roots=(str(history.project.root), str(other)))
    harvests = [read_layer(harvests[0].layer, guards), harvests[1]]

    with pytest.raises(ToolError, match="'b' was changed meanwhile"):
        await history.committer.commit(ToolCall(tool="bash", args={}), harvests)

    assert (history.project.root / "a").read_text() == "a\n"
    assert (other / "b").read_text() == "theirs\n"
    os.close(second.ran[0].layer.upper)
