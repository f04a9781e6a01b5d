import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.record.blobs import YOUNG_SECONDS, Blobs
from toolreeve.record.store import Store
from toolreeve.record.undo import LONGEST_KEPT, Undo, UndoOutcome

NOON = 1_700_000_000.0


class Desk:
    """A workspace whose changes are kept, and a clock that stands still unless it is set."""

    def __init__(self, top: Path) -> None:
        self.root, self.state = top / "work", top / "state"
        self.root.mkdir()
        self.state.mkdir()
        self.now = NOON
        self.store = Store(self.state / "db")
        self.undo = Undo(self.store, self.state / "undo", lambda: self.now, redact=Redactor().text)
        self.files = WorkspaceFiles(self.root, keep=self.undo)

    async def restore(self, **what: Any) -> list[UndoOutcome]:
        return list(await self.undo.restore(ToolCall(tool="undo", args={}), self.files, **what))

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
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    await made.store.start()
    yield made
    made.files.close()
    await made.store.close()


def call(session: str = "s") -> ToolCall:
    return ToolCall(tool="test", args={}, session=session)


async def test_a_new_file_is_taken_back_with_the_directories_made_for_it(desk: Desk) -> None:
    made = call()
    await desk.files.write(made, "a/b/new.txt", b"x")

    outcomes = await desk.restore(call_id=made.id)

    assert [each.outcome for each in outcomes] == ["restored"]
    assert desk.tree() == {}


async def test_a_directory_that_others_use_meanwhile_stays(desk: Desk) -> None:
    made = call()
    await desk.files.write(made, "a/new.txt", b"x")
    (desk.root / "a" / "theirs").write_text("theirs")

    await desk.restore(call_id=made.id)

    assert desk.tree() == {"a": "/", "a/theirs": "theirs"}


@pytest.mark.parametrize("append", [False, True])
async def test_an_overwritten_file_comes_back_with_its_mode(desk: Desk, append: bool) -> None:
    file = desk.root / "run.sh"
    file.write_text("old")
    file.chmod(0o750)
    made = call()
    await desk.files.write(made, "run.sh", b"new", append=append)

    await desk.restore(call_id=made.id)

    assert (file.read_text(), file.stat().st_mode & 0o7777) == ("old", 0o750)


async def test_a_deleted_file_and_a_deleted_link_come_back(desk: Desk) -> None:
    (desk.root / "file").write_text("content")
    (desk.root / "link").symlink_to("file")
    before = desk.tree()
    made = call()
    await desk.files.delete(made, "link")
    await desk.files.delete(made, "file")

    await desk.restore(call_id=made.id)

    assert desk.tree() == before


async def test_a_moved_file_and_what_it_replaced_come_back(desk: Desk) -> None:
    (desk.root / "one").write_text("one")
    (desk.root / "two").write_text("two")
    before = desk.tree()
    made = call()
    await desk.files.move(made, "one", "two", overwrite=True)
    await desk.files.move(made, "two", "deep/er/three")

    await desk.restore(call_id=made.id)

    assert desk.tree() == before


async def test_a_moved_directory_comes_back(desk: Desk) -> None:
    (desk.root / "dir").mkdir()
    (desk.root / "dir" / "file").write_text("x")
    before = desk.tree()
    made = call()
    await desk.files.move(made, "dir", "elsewhere/dir")

    await desk.restore(call_id=made.id)

    assert desk.tree() == before


async def test_a_session_is_taken_back_newest_first_and_others_are_left(desk: Desk) -> None:
    (desk.root / "file").write_text("v0")
    before = desk.tree()
    for content in (b"v1", b"v2", b"v3"):
        await desk.files.write(call("mine"), "file", content)
    await desk.files.delete(call("mine"), "file")
    await desk.files.write(call("mine"), "other/new", b"x")
    await desk.files.write(call("theirs"), "theirs", b"x")

    await desk.restore(session="mine")

    assert desk.tree() == before | {"theirs": "x"}
    with pytest.raises(ToolError, match="no file changes"):
        await desk.restore(session="mine")


class TestConflicts:
    async def test_a_file_changed_since_is_named_and_nothing_is_touched(self, desk: Desk) -> None:
        made = call()
        await desk.files.write(made, "one", b"1")
        await desk.files.write(made, "two", b"2")
        (desk.root / "one").write_text("edited by a person")
        before = desk.tree()

        with pytest.raises(ToolError) as caught:
            await desk.restore(call_id=made.id)

        assert caught.value.code is ErrorCode.WRITE_ERROR
        assert f"{desk.root}/one: changed since" in caught.value.message
        assert desk.tree() == before

    async def test_force_takes_it_back_and_that_can_be_taken_back_too(self, desk: Desk) -> None:
        made = call()
        (desk.root / "one").write_text("0")
        await desk.files.write(made, "one", b"1")
        (desk.root / "one").write_text("edited by a person")

        again = ToolCall(tool="undo", args={})
        await desk.undo.restore(again, desk.files, call_id=made.id, force=True)
        assert desk.tree() == {"one": "0"}
        await desk.restore(call_id=again.id)

        assert desk.tree() == {"one": "edited by a person"}

    async def test_a_change_by_others_between_two_of_ours_is_found(self, desk: Desk) -> None:
        await desk.files.write(call(), "file", b"1")
        (desk.root / "file").write_text("theirs")
        await desk.files.write(call(), "file", b"2")

        with pytest.raises(ToolError, match="changed since"):
            await desk.restore(session="s")

        assert desk.tree() == {"file": "2"}

    async def test_a_deleted_file_is_not_put_over_a_new_one(self, desk: Desk) -> None:
        (desk.root / "file").write_text("old")
        made = call()
        await desk.files.delete(made, "file")
        (desk.root / "file").write_text("new")

        with pytest.raises(ToolError, match="something else stands there now"):
            await desk.restore(call_id=made.id)

    async def test_a_file_is_not_moved_back_onto_another(self, desk: Desk) -> None:
        (desk.root / "one").write_text("one")
        made = call()
        await desk.files.move(made, "one", "two")
        (desk.root / "one").write_text("another")

        with pytest.raises(ToolError, match="something else stands there now"):
            await desk.restore(call_id=made.id)

    async def test_a_file_that_is_already_as_before_is_no_conflict(self, desk: Desk) -> None:
        (desk.root / "file").write_text("old")
        made = call()
        await desk.files.write(made, "file", b"new")
        (desk.root / "file").write_text("old")

        assert [each.outcome for each in await desk.restore(call_id=made.id)] == ["unchanged"]

    async def test_what_was_too_large_to_keep_is_told(self, desk: Desk) -> None:
        desk.undo.largest = 10
        (desk.root / "large").write_text("x" * 11)
        made = call()
        changed = await desk.files.write(made, "large", b"small")

        assert not changed.undoable
        with pytest.raises(ToolError, match="was not kept"):
            await desk.restore(call_id=made.id)


async def test_undo_goes_through_the_same_guard(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (desk.root / "dir").mkdir()
    (desk.root / "dir" / "file").write_text("old")
    made = call()
    await desk.files.write(made, "dir/file", b"new")
    (desk.root / "dir").rename(desk.root / "gone")
    (desk.root / "dir").symlink_to(outside)
    (outside / "file").write_text("new")

    with pytest.raises(ToolError) as caught:
        await desk.restore(call_id=made.id, force=True)

    assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert (outside / "file").read_text() == "new"


async def test_a_wrong_question_is_refused(desk: Desk) -> None:
    for what in ({}, {"call_id": "x", "session": "y"}, {"call_id": "unknown"}):
        with pytest.raises(ToolError) as caught:
            await desk.restore(**what)
        assert caught.value.code is ErrorCode.INVALID_PARAMS


async def test_what_is_kept_is_for_our_eyes_only(desk: Desk) -> None:
    (desk.root / "file").write_text("private")
    await desk.files.write(call(), "file", b"x")

    directory = desk.state / "undo"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in directory.iterdir()] == [0o600]


async def test_what_was_damaged_is_not_put_back(desk: Desk) -> None:
    (desk.root / "file").write_text("old")
    made = call()
    await desk.files.write(made, "file", b"new")
    for blob in (desk.state / "undo").iterdir():
        blob.write_text("damaged")

    outcomes = await desk.restore(call_id=made.id)

    assert [each.outcome for each in outcomes] == ["failed"]
    assert desk.tree() == {"file": "new"}


class TestPruning:
    async def test_what_is_old_is_forgotten(self, desk: Desk) -> None:
        (desk.root / "file").write_text("v0")
        await desk.files.write(call("old"), "file", b"v1")
        desk.now += LONGEST_KEPT + 1
        await desk.files.write(call("new"), "file", b"v2")

        await desk.undo.prune()

        assert len(desk.blobs()) == 1
        with pytest.raises(ToolError, match="no file changes"):
            await desk.restore(session="old")
        await desk.restore(session="new")
        assert desk.tree() == {"file": "v1"}

    async def test_of_too_much_the_oldest_is_forgotten(self, desk: Desk) -> None:
        for number in range(5):
            (desk.root / f"{number}").write_text(f"{number}" * 100)
            await desk.files.write(call(f"{number}"), f"{number}", b"x")
        desk.now += 2 * YOUNG_SECONDS

        await Undo(desk.store, desk.state / "undo", lambda: desk.now, redact=str, most_bytes=250).prune()

        assert len(desk.blobs()) == 2
        await desk.restore(session="4")
        with pytest.raises(ToolError, match="no file changes"):
            await desk.restore(session="0")

    def test_what_nobody_refers_to_yet_is_safe_for_a_while(self, tmp_path: Path) -> None:
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
from toolreeve.core.call import ToolCall
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.store import Store
from toolreeve.record.undo import Undo
import time
root, state = Path(sys.argv[1]), Path(sys.argv[2])
async def main():
    store = Store(state / "db")
    await store.start()
    files = WorkspaceFiles(root, keep=Undo(store, state / "undo", time.time, redact=str), unnamed_files=False)
    for n in range(100_000):
        call = ToolCall(tool="t", args={}, session="killed")
        await files.write(call, "file", b"%06d" % n * 1000)
        print(n, flush=True)
asyncio.run(main())
"""


def write_until_killed(desk: Desk) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, desk.root, desk.state], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)


async def test_whatever_a_killed_process_wrote_can_be_taken_back_and_leaves_nothing(desk: Desk) -> None:
    (desk.root / "file").write_text("before")
    for _ in range(3):
        write_until_killed(desk)

    await desk.undo.sweep(desk.files)
    assert [path.name for path in desk.root.iterdir()] == ["file"]
    await desk.restore(session="killed")

    assert desk.tree() == {"file": "before"}


async def test_the_changes_of_a_call_are_told_newest_first(desk: Desk) -> None:
    made = call()
    await desk.files.write(made, "a", b"1")
    await desk.files.write(made, "b", b"2")

    noted = await desk.undo.changes(call_id=made.id)

    assert [Path(each.change.path).name for each in noted] == ["b", "a"]
    assert replace(noted[0].change, temp="") == noted[0].change.__class__(
        kind="write", path=f"{desk.root}/b", after=desk.files.fingerprint_of(b"2")
    )


async def test_a_name_that_holds_a_secret_is_not_written_and_its_change_is_taken_back_by_this_process(
    desk: Desk,
) -> None:
    secret = "ghp_" + "a1B2" * 9
    made = call()
    await desk.files.write(made, f"{secret}/{secret}.txt", b"x")

    written = b"".join(path.read_bytes() for path in desk.state.glob("db*"))
    outcomes = await desk.restore(call_id=made.id)

    assert secret.encode() not in written
    assert ([each.outcome for each in outcomes], desk.tree()) == (["restored"], {})


async def test_another_process_says_that_it_cannot_take_back_what_was_not_named(desk: Desk) -> None:
    made = call()
    await desk.files.write(made, "ghp_" + "a1B2" * 9, b"x")
    desk.undo = Undo(desk.store, desk.state / "undo", lambda: desk.now, redact=Redactor().text)

    with pytest.raises(ToolError, match="its name holds a secret"):
        await desk.restore(call_id=made.id)
    (forced,) = await desk.restore(call_id=made.id, force=True)

    assert (forced.outcome, len(desk.tree())) == ("not kept", 1)
