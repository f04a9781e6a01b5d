import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolreeve.core.call import RecordScope, ToolCall, new_id
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.record.blobs import YOUNG_SECONDS, Blobs
from toolreeve.record.store import Store
from toolreeve.record.undo import LONGEST_KEPT, Undo, UndoOutcome

NOON = 1_700_000_000.0
OWNER = ToolCall(tool="undo", args={}, record_scope=RecordScope.ALL)


class UndoHarness:
    """A workspace whose changes are kept, and a clock that stands still unless it is set."""

    def __init__(self, top: Path) -> None:
        self.root = top / "work"
        self.state = top / "state"
        self.root.mkdir()
        self.state.mkdir()
        self.now = NOON
        self.store = Store(self.state / "db")
        self.undo = Undo(self.store.changes, self.contents(), lambda: self.now, redact=Redactor().text)
        self.files = WorkspaceFiles(self.root, keep=self.undo)

    def contents(self) -> Blobs:
        return Blobs(self.state / "undo", lambda: self.now)

    async def restore(self, **what: Any) -> list[UndoOutcome]:
        return list(await self.undo.restore(OWNER, self.files, **what))

    def tree(self) -> dict[str, str]:
        """Everything in the workspace: files with their content, links with their target, directories."""
        found: dict[str, str] = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if path.is_symlink():
                found[name] = f"-> {path.readlink()}"
            else:
                found[name] = path.read_text() if path.is_file() else "/"
        return found

    def blobs(self) -> list[str]:
        directory = self.state / "undo"
        return [path.name for path in directory.iterdir()] if directory.exists() else []


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[UndoHarness]:
    made = UndoHarness(tmp_path)
    await made.store.start()
    yield made
    made.files.close()
    await made.store.close()


def call(session: str = "s") -> ToolCall:
    return ToolCall(tool="test", args={}, session=session)


async def test_undoing_a_new_file_removes_its_new_directories_too(harness: UndoHarness) -> None:
    made = call()
    await harness.files.write(made, "a/b/new.txt", b"x")

    outcomes = await harness.restore(call_id=made.id)

    assert [each.outcome for each in outcomes] == ["removed"]
    assert harness.tree() == {}


async def test_a_directory_that_others_use_meanwhile_stays(harness: UndoHarness) -> None:
    made = call()
    await harness.files.write(made, "a/new.txt", b"x")
    (harness.root / "a" / "theirs").write_text("theirs")

    await harness.restore(call_id=made.id)

    assert harness.tree() == {"a": "/", "a/theirs": "theirs"}


@pytest.mark.parametrize("append", [False, True])
async def test_an_overwritten_file_comes_back_with_its_mode(harness: UndoHarness, append: bool) -> None:
    file = harness.root / "run.sh"
    file.write_text("old")
    file.chmod(0o750)
    made = call()
    await harness.files.write(made, "run.sh", b"new", append=append)

    await harness.restore(call_id=made.id)

    assert (file.read_text(), file.stat().st_mode & 0o7777) == ("old", 0o750)


async def test_a_deleted_file_and_a_deleted_link_come_back(harness: UndoHarness) -> None:
    (harness.root / "file").write_text("content")
    (harness.root / "link").symlink_to("file")
    before = harness.tree()
    made = call()
    await harness.files.delete(made, "link")
    await harness.files.delete(made, "file")

    await harness.restore(call_id=made.id)

    assert harness.tree() == before


async def test_a_moved_file_and_what_it_replaced_come_back(harness: UndoHarness) -> None:
    (harness.root / "one").write_text("one")
    (harness.root / "two").write_text("two")
    before = harness.tree()
    made = call()
    await harness.files.move(made, "one", "two", overwrite=True)
    await harness.files.move(made, "two", "deep/er/three")

    await harness.restore(call_id=made.id)

    assert harness.tree() == before


async def test_a_moved_directory_comes_back(harness: UndoHarness) -> None:
    (harness.root / "dir").mkdir()
    (harness.root / "dir" / "file").write_text("x")
    before = harness.tree()
    made = call()
    await harness.files.move(made, "dir", "elsewhere/dir")

    await harness.restore(call_id=made.id)

    assert harness.tree() == before


async def test_a_session_is_undone_newest_first_and_others_are_left(harness: UndoHarness) -> None:
    (harness.root / "file").write_text("v0")
    before = harness.tree()
    for content in (b"v1", b"v2", b"v3"):
        await harness.files.write(call("mine"), "file", content)
    await harness.files.delete(call("mine"), "file")
    await harness.files.write(call("mine"), "other/new", b"x")
    await harness.files.write(call("theirs"), "theirs", b"x")

    await harness.restore(session="mine")

    assert harness.tree() == before | {"theirs": "x"}
    with pytest.raises(ToolError, match="no file changes"):
        await harness.restore(session="mine")


class TestConflicts:
    async def test_a_file_changed_since_is_named_and_nothing_is_touched(self, harness: UndoHarness) -> None:
        made = call()
        await harness.files.write(made, "one", b"1")
        await harness.files.write(made, "two", b"2")
        (harness.root / "one").write_text("edited by a person")
        before = harness.tree()

        with pytest.raises(ToolError) as caught:
            await harness.restore(call_id=made.id)

        assert caught.value.code is ErrorCode.WRITE_ERROR
        assert f"{harness.root}/one: changed since" in caught.value.message
        assert harness.tree() == before

    async def test_a_forced_undo_can_itself_be_undone(self, harness: UndoHarness) -> None:
        made = call()
        (harness.root / "one").write_text("0")
        await harness.files.write(made, "one", b"1")
        (harness.root / "one").write_text("edited by a person")

        again = replace(OWNER, id=new_id())
        await harness.undo.restore(again, harness.files, call_id=made.id, force=True)
        assert harness.tree() == {"one": "0"}
        await harness.restore(call_id=again.id)

        assert harness.tree() == {"one": "edited by a person"}

    async def test_a_change_by_others_between_two_of_ours_is_found(self, harness: UndoHarness) -> None:
        await harness.files.write(call(), "file", b"1")
        (harness.root / "file").write_text("theirs")
        await harness.files.write(call(), "file", b"2")

        with pytest.raises(ToolError, match="changed since"):
            await harness.restore(session="s")

        assert harness.tree() == {"file": "2"}

    async def test_a_deleted_file_is_not_put_over_a_new_one(self, harness: UndoHarness) -> None:
        (harness.root / "file").write_text("old")
        made = call()
        await harness.files.delete(made, "file")
        (harness.root / "file").write_text("new")

        with pytest.raises(ToolError, match="another file is there now"):
            await harness.restore(call_id=made.id)

    async def test_a_file_is_not_moved_back_onto_another(self, harness: UndoHarness) -> None:
        (harness.root / "one").write_text("one")
        made = call()
        await harness.files.move(made, "one", "two")
        (harness.root / "one").write_text("another")

        with pytest.raises(ToolError, match="another file is there now"):
            await harness.restore(call_id=made.id)

    async def test_a_file_that_is_already_as_before_is_not_a_conflict(self, harness: UndoHarness) -> None:
        (harness.root / "file").write_text("old")
        made = call()
        await harness.files.write(made, "file", b"new")
        (harness.root / "file").write_text("old")

        assert [each.outcome for each in await harness.restore(call_id=made.id)] == ["unchanged"]

    async def test_a_content_too_large_to_keep_is_reported(self, harness: UndoHarness) -> None:
        harness.undo.largest = 10
        (harness.root / "large").write_text("x" * 11)
        made = call()
        changed = await harness.files.write(made, "large", b"small")

        assert not changed.undoable
        with pytest.raises(ToolError, match="was not kept"):
            await harness.restore(call_id=made.id)


async def test_undo_goes_through_the_same_guard(harness: UndoHarness, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (harness.root / "dir").mkdir()
    (harness.root / "dir" / "file").write_text("old")
    made = call()
    await harness.files.write(made, "dir/file", b"new")
    (harness.root / "dir").rename(harness.root / "gone")
    (harness.root / "dir").symlink_to(outside)
    (outside / "file").write_text("new")

    with pytest.raises(ToolError) as caught:
        await harness.restore(call_id=made.id, force=True)

    assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert (outside / "file").read_text() == "new"


async def test_a_malformed_undo_request_is_refused(harness: UndoHarness) -> None:
    for what in ({}, {"call_id": "x", "session": "y"}, {"call_id": "unknown"}):
        with pytest.raises(ToolError) as caught:
            await harness.restore(**what)
        assert caught.value.code is ErrorCode.INVALID_PARAMS


async def test_kept_contents_are_private(harness: UndoHarness) -> None:
    (harness.root / "file").write_text("private")
    await harness.files.write(call(), "file", b"x")

    directory = harness.state / "undo"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in directory.iterdir()] == [0o600]


async def test_a_damaged_content_is_not_restored(harness: UndoHarness) -> None:
    (harness.root / "file").write_text("old")
    made = call()
    await harness.files.write(made, "file", b"new")
    for blob in (harness.state / "undo").iterdir():
        blob.write_text("damaged")

    outcomes = await harness.restore(call_id=made.id)

    assert [each.outcome for each in outcomes] == ["failed"]
    assert harness.tree() == {"file": "new"}


class TestPruning:
    async def test_old_changes_are_pruned(self, harness: UndoHarness) -> None:
        (harness.root / "file").write_text("v0")
        await harness.files.write(call("old"), "file", b"v1")
        harness.now += LONGEST_KEPT + 1
        await harness.files.write(call("new"), "file", b"v2")

        await harness.undo.prune()

        assert len(harness.blobs()) == 1
        with pytest.raises(ToolError, match="no file changes"):
            await harness.restore(session="old")
        await harness.restore(session="new")
        assert harness.tree() == {"file": "v1"}

    async def test_beyond_the_size_limit_the_oldest_are_pruned(self, harness: UndoHarness) -> None:
        for number in range(5):
            (harness.root / f"{number}").write_text(f"{number}" * 100)
            await harness.files.write(call(f"{number}"), f"{number}", b"x")
        harness.now += 2 * YOUNG_SECONDS

        await Undo(harness.store.changes, harness.contents(), lambda: harness.now, redact=str, most_bytes=250).prune()

        assert len(harness.blobs()) == 2
        await harness.restore(session="4")
        with pytest.raises(ToolError, match="no file changes"):
            await harness.restore(session="0")

    def test_a_content_without_references_is_safe_for_a_while(self, tmp_path: Path) -> None:
        now = [NOON]
        blobs = Blobs(tmp_path / "blobs", lambda: now[0])
        (tmp_path / "file").write_text("x")
        descriptor = os.open(tmp_path / "file", os.O_RDONLY)
        digest = blobs.save(descriptor)
        os.close(descriptor)

        blobs.prune(())
        assert blobs.load(digest) == b"x"
        now[0] += YOUNG_SECONDS + 1
        blobs.prune(())
        assert blobs.load(digest) is None


KILLED = """
import asyncio, sys
from pathlib import Path
from toolreeve.core.call import RecordScope, ToolCall, new_id
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.blobs import Blobs
from toolreeve.record.store import Store
from toolreeve.record.undo import Undo
import time
root, state = Path(sys.argv[1]), Path(sys.argv[2])
async def main():
    store = Store(state / "db")
    await store.start()
    undo = Undo(store.changes, Blobs(state / "undo", time.time), time.time, redact=str)
    files = WorkspaceFiles(root, keep=undo, unnamed_files=False)
    for n in range(100_000):
        call = ToolCall(tool="t", args={}, session="killed")
        await files.write(call, "file", b"%06d" % n * 1000)
        print(n, flush=True)
asyncio.run(main())
"""


def write_until_killed(harness: UndoHarness) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, harness.root, harness.state], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)


async def test_changes_of_a_killed_process_can_be_undone_and_leave_nothing(harness: UndoHarness) -> None:
    (harness.root / "file").write_text("before")
    for _ in range(3):
        write_until_killed(harness)

    await harness.undo.sweep(harness.files)
    assert [path.name for path in harness.root.iterdir()] == ["file"]
    await harness.restore(session="killed")

    assert harness.tree() == {"file": "before"}


async def test_the_changes_of_a_call_are_listed_newest_first(harness: UndoHarness) -> None:
    made = call()
    await harness.files.write(made, "a", b"1")
    await harness.files.write(made, "b", b"2")

    noted = await harness.undo.changes(call_id=made.id)

    assert [Path(each.change.path).name for each in noted] == ["b", "a"]
    assert replace(noted[0].change, temp="") == noted[0].change.__class__(
        kind="write", path=f"{harness.root}/b", after=harness.files.fingerprint_of(b"2")
    )


async def test_a_name_that_holds_a_secret_is_not_written_and_its_change_is_undone_by_this_process(
    harness: UndoHarness,
) -> None:
    secret = "ghp_" + "a1B2" * 9
    made = call()
    await harness.files.write(made, f"{secret}/{secret}.txt", b"x")

    written = b"".join(path.read_bytes() for path in harness.state.glob("db*"))
    outcomes = await harness.restore(call_id=made.id)

    assert secret.encode() not in written
    assert ([each.outcome for each in outcomes], harness.tree()) == (["removed"], {})


async def test_another_process_reports_that_it_cannot_undo_an_unnamed_change(harness: UndoHarness) -> None:
    made = call()
    await harness.files.write(made, "ghp_" + "a1B2" * 9, b"x")
    harness.undo = Undo(harness.store.changes, harness.contents(), lambda: harness.now, redact=Redactor().text)

    with pytest.raises(ToolError, match="its name holds a secret"):
        await harness.restore(call_id=made.id)
    (forced,) = await harness.restore(call_id=made.id, force=True)

    assert (forced.outcome, len(harness.tree())) == ("not kept", 1)
