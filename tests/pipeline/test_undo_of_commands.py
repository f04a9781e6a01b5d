"""Commands whose changes were kept, undone through the road; a killed commit, recovered at the next start."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.pipeline.test_confinement import Person, snapshot
from tests.world import World
from toolreeve.config import Workspace
from toolreeve.core.errors import ErrorCode

CHANGE = (
    "python3 - <<'EOF'\nimport os\nopen('a.txt', 'a').write('two\\n')\nos.makedirs('pkg')\nopen('pkg/m.py', 'w')\nEOF"
)
REMOVE = "python3 - <<'EOF'\nimport shutil\nshutil.rmtree('pkg')\nEOF"


async def test_a_kept_command_is_undone_by_its_call(world: World) -> None:
    (world.workspace / "a.txt").write_text("one\n")
    before = snapshot(world.workspace)
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        made = await reeve.call("bash", {"command": CHANGE})
        assert (made.meta.trial or {})["outcome"] == "kept", made.to_text()
        assert (world.workspace / "pkg/m.py").exists()

        undone = await reeve.undo(last=True)

        assert undone.success, undone.to_text()
        assert snapshot(world.workspace) == before
        assert [record.body["tool"] for record in await reeve.audit.show(undone.meta.call_id)][-1] == "undo"


async def test_a_session_of_commands_and_file_tools_is_undone(world: World) -> None:
    (world.workspace / "a.txt").write_text("one\n")
    before = snapshot(world.workspace)
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        await reeve.call("bash", {"command": CHANGE}, session="day")
        await reeve.call("write_file", {"path": "pkg/m.py", "content": "x = 1\n"}, session="day")
        await reeve.call("bash", {"command": REMOVE}, session="day")
        assert not (world.workspace / "pkg").exists()

        undone = await reeve.undo(session="day")

    assert undone.success, undone.to_text()
    assert snapshot(world.workspace) == before


async def test_a_file_that_was_changed_since_keeps_the_undo_from_changing_anything(world: World) -> None:
    (world.workspace / "a.txt").write_text("one\n")
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        made = await reeve.call("bash", {"command": CHANGE})
        (world.workspace / "a.txt").write_text("theirs\n")

        undone = await reeve.undo(last=True)

    assert made.success
    assert undone.error is not None
    assert undone.error.code is ErrorCode.WRITE_ERROR
    assert "a.txt: changed since. Nothing was changed" in undone.error.message
    assert (world.workspace / "pkg/m.py").exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.trial.overlay import run_trial
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.trial.commits import Commits
from toolreeve.trial.layer_reader import read_layer

workspace, state = Path(sys.argv[1]), Path(sys.argv[2])
layer = run_trial(workspace, "echo two >> a.txt; echo > new").layer
commits = Commits(state)
prepared = commits.prepare(read_layer(layer, GuardTable(roots=(str(workspace),))))
commits.journal.publish(prepared.plan, is_synced=False)
os.kill(os.getpid(), signal.SIGKILL)
"""


async def test_a_commit_that_was_killed_is_finished_at_the_next_start_and_recorded(world: World) -> None:
    (world.workspace / "a.txt").write_text("one\n")
    state = world.settings().state.dir
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, str(world.workspace), str(state))
    assert await killed.wait() == -signal.SIGKILL

    async with world.reeve() as reeve:
        recorded = [record.body async for record in reeve.audit.stream() if record.kind == "recovery"]

    assert (world.workspace / "a.txt").read_text() == "one\ntwo\n"
    assert [(body["outcome"], body["root"]) for body in recorded] == [("finished", os.fspath(world.workspace))]


async def test_the_last_call_is_that_of_this_workspace(world: World, tmp_path: Path) -> None:
    """Workspaces share the record."""
    other = tmp_path / "other"
    other.mkdir()
    neighbour = world.settings(workspace=Workspace(dir=str(other)))
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        await reeve.call("write_file", {"path": "here.txt", "content": "x"})
    async with world.reeve(settings=neighbour, approve=Person(agrees=True)) as reeve:
        await reeve.call("write_file", {"path": "there.txt", "content": "x"})
    async with world.reeve(approve=Person(agrees=True)) as reeve:
        undone = await reeve.undo(last=True)
        nothing = await reeve.undo(last=True)

    assert undone.success, undone.to_text()
    assert "no call in this workspace has file changes left to undo" in nothing.to_text()
    assert not (world.workspace / "here.txt").exists()
    assert (other / "there.txt").exists()
