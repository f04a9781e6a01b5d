import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.place import CALL, Place, names, run
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Change, Changed
from toolreeve.guard.files.writer import MAX_COPIED


class Notes:
    """Remembers what it is told, and saves nothing."""

    largest = 1000

    def __init__(self, place: Place | None = None) -> None:
        self.changes: list[Change] = []
        self.seen: list[bytes | None] = []
        self.saved: list[bytes] = []
        self._place = place

    def save(self, descriptor: int) -> None:
        self.saved.append(os.pread(descriptor, 10_000, 0))

    async def note(self, call: ToolCall, change: Change) -> None:
        self.changes.append(change)
        path = Path(change.path)
        self.seen.append(path.read_bytes() if path.exists() else None)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestWriting:
    def test_a_new_file_comes_with_the_directories_it_needs(self, place: Place) -> None:
        changed = run(place.files.write(CALL, "a/b/new.txt", b"hello"))

        assert changed == Changed(path=str(place.root / "a" / "b" / "new.txt"), size=5, undoable=False)
        assert (place.root / "a" / "b" / "new.txt").read_bytes() == b"hello"

    def test_without_leave_to_make_directories_a_missing_one_is_an_error(self, place: Place) -> None:
        with pytest.raises(ToolError, match="Directory not found: a") as caught:
            run(place.files.write(CALL, "a/b/new.txt", b"hello", create_dirs=False))

        assert caught.value.code is ErrorCode.DIR_NOT_FOUND
        assert names(place.root) == ["docs"]

    def test_a_replaced_file_keeps_its_mode_but_no_privilege(self, place: Place) -> None:
        file = place.root / "run.sh"
        file.write_text("old")
        file.chmod(0o4751)

        run(place.files.write(CALL, "run.sh", b"new"))

        assert (file.read_text(), mode(file)) == ("new", 0o751)

    def test_a_new_file_has_the_usual_mode(self, place: Place) -> None:
        run(place.files.write(CALL, "new", b""))
        (place.root / "usual").touch()

        assert mode(place.root / "new") == mode(place.root / "usual")

    def test_appending_adds_to_the_end_and_creates_what_is_missing(self, place: Place) -> None:
        run(place.files.write(CALL, "log", b"one\n", append=True))
        changed = run(place.files.write(CALL, "log", b"two\n", append=True))

        assert (place.root / "log").read_bytes() == b"one\ntwo\n"
        assert changed.size == 8

    @pytest.mark.parametrize("append", [False, True])
    def test_a_hard_link_to_a_file_outside_is_not_written_through(self, place: Place, append: bool) -> None:
        os.link(place.outside / "secret.txt", place.root / "hard")

        run(place.files.write(CALL, "hard", b"mine", append=append))

        assert place.canaries_live()

    def test_a_file_too_large_to_copy_is_appended_to_in_place_unless_it_has_other_names(self, place: Place) -> None:
        large = place.root / "large.log"
        with large.open("wb") as file:
            file.truncate(MAX_COPIED + 1)

        changed = run(place.files.write(CALL, "large.log", b"end", append=True))
        os.link(large, place.root / "other")

        assert (changed.size, changed.undoable) == (MAX_COPIED + 4, False)
        with place.files.open("large.log") as reader:
            assert reader.read(MAX_COPIED + 1, 10) == b"end"
        with pytest.raises(ToolError, match="hard links"):
            run(place.files.write(CALL, "large.log", b"more", append=True))
        assert large.stat().st_size == MAX_COPIED + 4

    def test_a_file_that_is_being_read_stays_whole_for_its_reader(self, place: Place) -> None:
        with place.files.open("docs/note.txt") as reader:
            run(place.files.write(CALL, "docs/note.txt", b"replaced meanwhile"))

            assert reader.read(0, 100) == b"inside"

    def test_writing_through_a_link_inside_replaces_what_it_leads_to(self, place: Place) -> None:
        (place.root / "link").symlink_to("docs/note.txt")

        run(place.files.write(CALL, "link", b"through"))

        assert (place.root / "link").is_symlink()
        assert (place.root / "docs" / "note.txt").read_bytes() == b"through"

    def test_a_file_that_is_no_longer_what_was_read_is_not_replaced(self, place: Place) -> None:
        expect = place.files.fingerprint_of(b"something else")

        with pytest.raises(ToolError, match="changed since it was read"):
            run(place.files.write(CALL, "docs/note.txt", b"new", expect=expect))

        assert place.read("docs/note.txt") == b"inside"

    def test_nothing_is_written_where_writing_is_off(self, place: Place) -> None:
        files = place.workspace(allow_write=False)

        for work in (
            files.write(CALL, "new", b""),
            files.write(CALL, "/etc/passwd", b""),
            files.delete(CALL, "docs/note.txt"),
            files.move(CALL, "docs/note.txt", "x"),
        ):
            with pytest.raises(ToolError) as caught:
                run(work)
            assert caught.value.code is ErrorCode.WRITE_DISABLED

    def test_a_root_that_may_only_be_read_is_not_written(self, place: Place) -> None:
        files = place.workspace(extra_roots=[str(place.outside)])

        with pytest.raises(ToolError, match="may only be read"):
            run(files.write(CALL, str(place.outside / "new"), b""))

        other = place.workspace(writable_roots=[str(place.outside)])
        assert run(other.write(CALL, str(place.outside / "new"), b"x")).size == 1

    def test_many_writers_of_one_file_follow_one_another(self, place: Place) -> None:
        async def all_at_once() -> None:
            await asyncio.gather(*(place.files.write(CALL, "log", b"%d\n" % n, append=True) for n in range(40)))

        run(all_at_once())

        assert sorted((place.root / "log").read_text().split()) == sorted(str(n) for n in range(40))
        assert place.leftovers() == []


class TestKeeping:
    def test_a_change_is_noted_before_it_is_made(self, place: Place) -> None:
        notes = Notes()
        files = place.workspace(keep=notes)

        run(files.write(CALL, "new/x", b"1"))
        run(files.write(CALL, "new/x", b"2"))
        run(files.delete(CALL, "new/x"))

        assert notes.seen == [None, b"1", b"2"]
        assert notes.saved == [b"1", b"2"]
        assert [(each.kind, each.made) for each in notes.changes] == [
            ("write", (str(place.root / "new"),)),
            ("write", ()),
            ("delete", ()),
        ]

    def test_a_change_that_cannot_be_noted_is_not_made(self, place: Place) -> None:
        class Full(Notes):
            async def note(self, call: ToolCall, change: Change) -> None:
                raise ToolError(ErrorCode.AUDIT_ERROR, "the disk is full")

        files = place.workspace(keep=Full())

        for work in (
            files.write(CALL, "deep/new", b"x"),
            files.write(CALL, "docs/note.txt", b"x"),
            files.delete(CALL, "docs/note.txt"),
            files.move(CALL, "docs/note.txt", "deep/other"),
        ):
            with pytest.raises(ToolError, match="the disk is full"):
                run(work)
        assert names(place.root) == ["docs"]
        assert place.read("docs/note.txt") == b"inside"

    def test_what_is_too_large_to_keep_is_changed_all_the_same_and_told(self, place: Place) -> None:
        notes = Notes()
        (place.root / "large").write_bytes(b"x" * 1001)

        changed = run(place.workspace(keep=notes).write(CALL, "large", b"small"))

        assert not changed.undoable
        assert notes.saved == []


class TestDeleting:
    def test_a_file_is_deleted_and_a_missing_one_is_no_error(self, place: Place) -> None:
        assert run(place.files.delete(CALL, "docs/note.txt")).existed
        assert not run(place.files.delete(CALL, "docs/note.txt")).existed
        assert not run(place.files.delete(CALL, "no/such/directory")).existed
        assert names(place.root / "docs") == []

    def test_of_a_link_the_link_is_deleted(self, place: Place) -> None:
        (place.root / "link").symlink_to("docs/note.txt")
        (place.root / "out").symlink_to(place.outside / "secret.txt")

        run(place.files.delete(CALL, "link"))
        run(place.files.delete(CALL, "out"))

        assert names(place.root) == ["docs"]
        assert place.read("docs/note.txt") == b"inside"
        assert place.canaries_live()

    def test_a_directory_is_not_deleted(self, place: Place) -> None:
        with pytest.raises(ToolError, match="is a directory"):
            run(place.files.delete(CALL, "docs"))


class TestMoving:
    def test_a_file_moves_into_a_new_directory(self, place: Place) -> None:
        moved = run(place.files.move(CALL, "docs/note.txt", "new/deep/note.md"))

        assert moved.path == str(place.root / "new" / "deep" / "note.md")
        assert place.read("new/deep/note.md") == b"inside"
        assert names(place.root / "docs") == []

    def test_a_directory_moves_with_all_in_it(self, place: Place) -> None:
        run(place.files.move(CALL, "docs", "papers"))

        assert place.read("papers/note.txt") == b"inside"

    def test_what_is_already_there_is_replaced_only_on_request(self, place: Place) -> None:
        (place.root / "other").write_text("other")

        with pytest.raises(ToolError, match="already exists"):
            run(place.files.move(CALL, "docs/note.txt", "other"))
        assert run(place.files.move(CALL, "docs/note.txt", "other", overwrite=True)).existed
        assert place.read("other") == b"inside"

    def test_neither_end_may_lie_outside(self, place: Place) -> None:
        (place.root / "out").symlink_to(place.outside)

        for source, destination in (
            ("docs/note.txt", "../outside/x"),
            ("../outside/secret.txt", "x"),
            ("docs/note.txt", "out/x"),
            ("out/secret.txt", "x"),
        ):
            with pytest.raises(ToolError) as caught:
                run(place.files.move(CALL, source, destination))
            assert caught.value.code is ErrorCode.PATH_FORBIDDEN
        assert names(place.outside) == ["secret.txt"]

    def test_a_missing_file_and_a_move_into_itself_are_errors(self, place: Place) -> None:
        with pytest.raises(ToolError, match="File not found"):
            run(place.files.move(CALL, "none", "x"))
        with pytest.raises(ToolError) as caught:
            run(place.files.move(CALL, "docs", "docs/deeper/docs"))

        assert caught.value.code is ErrorCode.WRITE_ERROR
        assert names(place.root / "docs") == ["note.txt"]


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


def test_a_write_that_does_not_fit_leaves_everything_as_it_was(place: Place) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", LIMITED, place.root, place.backend], capture_output=True, text=True, check=True
    )

    assert answer.stdout == "E_WRITE_ERROR\nE_WRITE_ERROR\n"
    assert names(place.root) == ["docs"]
    assert place.read("docs/note.txt") == b"inside"
    assert place.leftovers() == []


def test_a_cancelled_caller_leaves_the_file_as_before_or_as_meant(place: Place) -> None:
    async def cancel_early() -> None:
        for delay in range(30):
            task = asyncio.create_task(place.files.write(CALL, "docs/note.txt", b"outside" * 1000))
            for _ in range(delay):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert place.read("docs/note.txt") in (b"inside", (b"outside" * 1000)[:1000])

    run(cancel_early())

    assert place.leftovers() == []


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
    place = Place(tmp_path, backend="openat2")
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", KILLED, place.root], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.send_signal(signal.SIGKILL)

        data = (place.root / "docs" / "note.txt").read_bytes()
        assert data == data[:6] * 2000
        for left in place.leftovers():
            place.files.sweep(str(place.root / "docs"), left)
        assert place.leftovers() == []
    place.close()


def test_a_file_system_without_unnamed_files_is_written_through_a_temporary_name(place: Place) -> None:
    files = place.workspace(unnamed_files=False)

    run(files.write(CALL, "docs/note.txt", b"replaced"))
    run(files.write(CALL, "docs/new.txt", b"new"))

    assert (place.read("docs/note.txt"), place.read("docs/new.txt")) == (b"replaced", b"new")
    assert names(place.root / "docs") == ["new.txt", "note.txt"]
