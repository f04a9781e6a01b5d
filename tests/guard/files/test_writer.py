import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.workspace import CALL, GuardedWorkspace, names, run
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Change, Changed
from toolreeve.guard.files.writer import MAX_COPIED


class Notes:
    """Records the changes, and saves nothing."""

    largest = 1000

    def __init__(self, guarded: GuardedWorkspace | None = None) -> None:
        self.changes: list[Change] = []
        self.seen: list[bytes | None] = []
        self.saved: list[bytes] = []
        self._guarded = guarded

    def save(self, descriptor: int) -> None:
        self.saved.append(os.pread(descriptor, 10_000, 0))

    async def note(self, call: ToolCall, change: Change) -> None:
        self.changes.append(change)
        path = Path(change.path)
        self.seen.append(path.read_bytes() if path.exists() else None)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestWriting:
    def test_a_new_file_comes_with_the_directories_it_needs(self, guarded: GuardedWorkspace) -> None:
        changed = run(guarded.files.write(CALL, "a/b/new.txt", b"hello"))

        assert changed == Changed(path=str(guarded.root / "a" / "b" / "new.txt"), size=5, undoable=False)
        assert (guarded.root / "a" / "b" / "new.txt").read_bytes() == b"hello"

    def test_without_leave_to_make_directories_a_missing_one_is_an_error(self, guarded: GuardedWorkspace) -> None:
        with pytest.raises(ToolError, match="Directory not found: a") as caught:
            run(guarded.files.write(CALL, "a/b/new.txt", b"hello", create_dirs=False))

        assert caught.value.code is ErrorCode.DIR_NOT_FOUND
        assert names(guarded.root) == ["docs"]

    def test_a_replaced_file_keeps_its_mode_but_no_privilege(self, guarded: GuardedWorkspace) -> None:
        file = guarded.root / "run.sh"
        file.write_text("old")
        file.chmod(0o4751)

        run(guarded.files.write(CALL, "run.sh", b"new"))

        assert (file.read_text(), mode(file)) == ("new", 0o751)

    def test_a_new_file_has_the_usual_mode(self, guarded: GuardedWorkspace) -> None:
        run(guarded.files.write(CALL, "new", b""))
        (guarded.root / "usual").touch()

        assert mode(guarded.root / "new") == mode(guarded.root / "usual")

    def test_appending_adds_to_the_end_and_creates_what_is_missing(self, guarded: GuardedWorkspace) -> None:
        run(guarded.files.write(CALL, "log", b"one\n", append=True))
        changed = run(guarded.files.write(CALL, "log", b"two\n", append=True))

        assert (guarded.root / "log").read_bytes() == b"one\ntwo\n"
        assert changed.size == 8

    @pytest.mark.parametrize("append", [False, True])
    def test_a_hard_link_to_a_file_outside_is_not_written_through(
        self, guarded: GuardedWorkspace, append: bool
    ) -> None:
        os.link(guarded.outside / "secret.txt", guarded.root / "hard")

        run(guarded.files.write(CALL, "hard", b"mine", append=append))

        assert guarded.canaries_live()

    def test_a_file_too_large_to_copy_is_appended_to_in_place_unless_it_has_other_names(
        self, guarded: GuardedWorkspace
    ) -> None:
        large = guarded.root / "large.log"
        with large.open("wb") as file:
            file.truncate(MAX_COPIED + 1)

        changed = run(guarded.files.write(CALL, "large.log", b"end", append=True))
        os.link(large, guarded.root / "other")

        assert (changed.size, changed.undoable) == (MAX_COPIED + 4, False)
        with guarded.files.open("large.log") as reader:
            assert reader.read(MAX_COPIED + 1, 10) == b"end"
        with pytest.raises(ToolError, match="hard links"):
            run(guarded.files.write(CALL, "large.log", b"more", append=True))
        assert large.stat().st_size == MAX_COPIED + 4

    def test_a_file_that_is_being_read_stays_whole_for_its_reader(self, guarded: GuardedWorkspace) -> None:
        with guarded.files.open("docs/note.txt") as reader:
            run(guarded.files.write(CALL, "docs/note.txt", b"replaced meanwhile"))

            assert reader.read(0, 100) == b"inside"

    def test_writing_through_a_link_inside_replaces_what_it_leads_to(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "link").symlink_to("docs/note.txt")

        run(guarded.files.write(CALL, "link", b"through"))

        assert (guarded.root / "link").is_symlink()
        assert (guarded.root / "docs" / "note.txt").read_bytes() == b"through"

    def test_a_file_that_is_no_longer_what_was_read_is_not_replaced(self, guarded: GuardedWorkspace) -> None:
        expect = guarded.files.fingerprint_of(b"something else")

        with pytest.raises(ToolError, match="changed since it was read"):
            run(guarded.files.write(CALL, "docs/note.txt", b"new", expect=expect))

        assert guarded.read("docs/note.txt") == b"inside"

    def test_nothing_is_written_where_writing_is_off(self, guarded: GuardedWorkspace) -> None:
        files = guarded.workspace(allow_write=False)

        for work in (
            files.write(CALL, "new", b""),
            files.write(CALL, "/etc/passwd", b""),
            files.delete(CALL, "docs/note.txt"),
            files.move(CALL, "docs/note.txt", "x"),
        ):
            with pytest.raises(ToolError) as caught:
                run(work)
            assert caught.value.code is ErrorCode.WRITE_DISABLED

    def test_a_root_that_may_only_be_read_is_not_written(self, guarded: GuardedWorkspace) -> None:
        files = guarded.workspace(extra_roots=[str(guarded.outside)])

        with pytest.raises(ToolError, match="may only be read"):
            run(files.write(CALL, str(guarded.outside / "new"), b""))

        other = guarded.workspace(writable_roots=[str(guarded.outside)])
        assert run(other.write(CALL, str(guarded.outside / "new"), b"x")).size == 1

    def test_many_writers_of_one_file_follow_one_another(self, guarded: GuardedWorkspace) -> None:
        async def all_at_once() -> None:
            await asyncio.gather(*(guarded.files.write(CALL, "log", b"%d\n" % n, append=True) for n in range(40)))

        run(all_at_once())

        assert sorted((guarded.root / "log").read_text().split()) == sorted(str(n) for n in range(40))
        assert guarded.leftovers() == []


class TestKeeping:
    def test_a_change_is_noted_before_it_is_made(self, guarded: GuardedWorkspace) -> None:
        notes = Notes()
        files = guarded.workspace(keep=notes)

        run(files.write(CALL, "new/x", b"1"))
        run(files.write(CALL, "new/x", b"2"))
        run(files.delete(CALL, "new/x"))

        assert notes.seen == [None, b"1", b"2"]
        assert notes.saved == [b"1", b"2"]
        assert [(each.kind, each.made) for each in notes.changes] == [
            ("write", (str(guarded.root / "new"),)),
            ("write", ()),
            ("delete", ()),
        ]

    def test_a_change_that_cannot_be_noted_is_not_made(self, guarded: GuardedWorkspace) -> None:
        class Full(Notes):
            async def note(self, call: ToolCall, change: Change) -> None:
                raise ToolError(ErrorCode.AUDIT_ERROR, "the disk is full")

        files = guarded.workspace(keep=Full())

        for work in (
            files.write(CALL, "deep/new", b"x"),
            files.write(CALL, "docs/note.txt", b"x"),
            files.delete(CALL, "docs/note.txt"),
            files.move(CALL, "docs/note.txt", "deep/other"),
        ):
            with pytest.raises(ToolError, match="the disk is full"):
                run(work)
        assert names(guarded.root) == ["docs"]
        assert guarded.read("docs/note.txt") == b"inside"

    def test_what_is_too_large_to_keep_is_changed_all_the_same_and_reported(self, guarded: GuardedWorkspace) -> None:
        notes = Notes()
        (guarded.root / "large").write_bytes(b"x" * 1001)

        changed = run(guarded.workspace(keep=notes).write(CALL, "large", b"small"))

        assert not changed.undoable
        assert notes.saved == []


class TestDeleting:
    def test_a_file_is_deleted_and_a_missing_one_is_no_error(self, guarded: GuardedWorkspace) -> None:
        assert run(guarded.files.delete(CALL, "docs/note.txt")).existed
        assert not run(guarded.files.delete(CALL, "docs/note.txt")).existed
        assert not run(guarded.files.delete(CALL, "no/such/directory")).existed
        assert names(guarded.root / "docs") == []

    def test_of_a_link_the_link_is_deleted(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "link").symlink_to("docs/note.txt")
        (guarded.root / "out").symlink_to(guarded.outside / "secret.txt")

        run(guarded.files.delete(CALL, "link"))
        run(guarded.files.delete(CALL, "out"))

        assert names(guarded.root) == ["docs"]
        assert guarded.read("docs/note.txt") == b"inside"
        assert guarded.canaries_live()

    def test_a_directory_is_not_deleted(self, guarded: GuardedWorkspace) -> None:
        with pytest.raises(ToolError, match="is a directory"):
            run(guarded.files.delete(CALL, "docs"))


class TestMoving:
    def test_a_file_moves_into_a_new_directory(self, guarded: GuardedWorkspace) -> None:
        moved = run(guarded.files.move(CALL, "docs/note.txt", "new/deep/note.md"))

        assert moved.path == str(guarded.root / "new" / "deep" / "note.md")
        assert guarded.read("new/deep/note.md") == b"inside"
        assert names(guarded.root / "docs") == []

    def test_a_directory_moves_with_all_in_it(self, guarded: GuardedWorkspace) -> None:
        run(guarded.files.move(CALL, "docs", "papers"))

        assert guarded.read("papers/note.txt") == b"inside"

    def test_what_is_already_there_is_replaced_only_on_request(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "other").write_text("other")

        with pytest.raises(ToolError, match="already exists"):
            run(guarded.files.move(CALL, "docs/note.txt", "other"))
        assert run(guarded.files.move(CALL, "docs/note.txt", "other", overwrite=True)).existed
        assert guarded.read("other") == b"inside"

    def test_neither_end_may_lie_outside(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "out").symlink_to(guarded.outside)

        for source, destination in (
            ("docs/note.txt", "../outside/x"),
            ("../outside/secret.txt", "x"),
            ("docs/note.txt", "out/x"),
            ("out/secret.txt", "x"),
        ):
            with pytest.raises(ToolError) as caught:
                run(guarded.files.move(CALL, source, destination))
            assert caught.value.code is ErrorCode.PATH_FORBIDDEN
        assert names(guarded.outside) == ["secret.txt"]

    def test_a_missing_file_and_a_move_into_itself_are_errors(self, guarded: GuardedWorkspace) -> None:
        with pytest.raises(ToolError, match="File not found"):
            run(guarded.files.move(CALL, "none", "x"))
        with pytest.raises(ToolError) as caught:
            run(guarded.files.move(CALL, "docs", "docs/deeper/docs"))

        assert caught.value.code is ErrorCode.WRITE_ERROR
        assert names(guarded.root / "docs") == ["note.txt"]


LIMITED = """
import asyncio, resource, signal, sys
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ToolError
from toolreeve.guard.files.workspace import WorkspaceFiles
files = WorkspaceFiles(sys.argv[1], backend=sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for path in ("docs/note.txt", "new/deep/file"):
    try:
        asyncio.run(files.write(ToolCall(tool="t", args={}), path, b"x" * 5000))
    except ToolError as problem:
        print(problem.code)
"""


def test_a_write_that_does_not_fit_leaves_everything_as_it_was(guarded: GuardedWorkspace) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LIMITED, guarded.root, guarded.backend], capture_output=True, text=True, check=True
    )

    assert answer.stdout == "E_WRITE_ERROR\nE_WRITE_ERROR\n"
    assert names(guarded.root) == ["docs"]
    assert guarded.read("docs/note.txt") == b"inside"
    assert guarded.leftovers() == []


def test_a_cancelled_caller_leaves_the_file_as_before_or_as_meant(guarded: GuardedWorkspace) -> None:
    async def cancel_early() -> None:
        for delay in range(30):
            task = asyncio.create_task(guarded.files.write(CALL, "docs/note.txt", b"outside" * 1000))
            for _ in range(delay):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert guarded.read("docs/note.txt") in (b"inside", (b"outside" * 1000)[:1000])

    run(cancel_early())

    assert guarded.leftovers() == []


KILLED = """
import asyncio, sys
from toolreeve.core.call import ToolCall
from toolreeve.guard.files.workspace import WorkspaceFiles
files = WorkspaceFiles(sys.argv[1])
async def main():
    for n in range(100_000):
        await files.write(ToolCall(tool="t", args={}), "docs/note.txt", b"%06d" % n * 2000)
        if n == 3:
            print("ready", flush=True)
asyncio.run(main())
"""


def test_a_killed_process_leaves_a_whole_file_and_at_most_a_name_that_is_swept(tmp_path: Path) -> None:
    guarded = GuardedWorkspace(tmp_path, backend="openat2")
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", KILLED, guarded.root], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGKILL)

        data = (guarded.root / "docs" / "note.txt").read_bytes()
        assert data == data[:6] * 2000
        for left in guarded.leftovers():
            guarded.files.sweep(str(guarded.root / "docs"), left)
        assert guarded.leftovers() == []
    guarded.close()


def test_a_file_system_without_unnamed_files_is_written_through_a_temporary_name(guarded: GuardedWorkspace) -> None:
    files = guarded.workspace(unnamed_files=False)

    run(files.write(CALL, "docs/note.txt", b"replaced"))
    run(files.write(CALL, "docs/new.txt", b"new"))

    assert (guarded.read("docs/note.txt"), guarded.read("docs/new.txt")) == (b"replaced", b"new")
    assert names(guarded.root / "docs") == ["new.txt", "note.txt"]
