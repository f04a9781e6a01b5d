"""Attacks on containment, each against both ways of opening a path."""

import os
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guard.place import CANARY, Place, names
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.guard.files.workspace import WorkspaceFiles

FORBIDDEN, INVALID = ErrorCode.PATH_FORBIDDEN, ErrorCode.INVALID_PATH


@pytest.mark.parametrize(
    "spelling",
    [
        "docs/note.txt",
        "./docs/note.txt",
        "docs//note.txt",
        "docs/../docs/note.txt",
        "docs/./note.txt",
        "../work/docs/note.txt",
    ],
)
def test_a_path_that_stays_inside_is_read_however_it_is_spelled(place: Place, spelling: str) -> None:
    assert place.files.read(spelling, 100).path == str(place.root / "docs" / "note.txt")


def test_an_absolute_path_inside_is_read(place: Place) -> None:
    assert place.read(f"{place.root}/docs/note.txt") == b"inside"
    assert place.read(f"//{place.root}//docs/note.txt") == b"inside"


def test_the_workspace_may_be_named_through_a_link_to_it(place: Place) -> None:
    alias = place.outside / "alias"
    alias.symlink_to(place.root)
    files = WorkspaceFiles(alias, backend=place.backend)

    assert files.read(f"{alias}/docs/note.txt", 100).path == str(place.root / "docs" / "note.txt")
    assert files.read(f"{place.root}/docs/note.txt", 100).data == b"inside"
    files.close()


@pytest.mark.parametrize(
    "attack",
    [
        "../outside/secret.txt",
        "docs/../../outside/secret.txt",
        "./../outside/secret.txt",
        "..//outside//secret.txt",
        "nowhere/../../outside/secret.txt",
        "docs/note.txt/../../../outside/secret.txt",
        "..",
        "../work-sibling/secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/../etc/passwd",
        "/dev/null",
        "~/.ssh/id_rsa",
        "~",
    ],
)
def test_a_way_out_is_refused(place: Place, attack: str) -> None:
    assert place.refusal(attack) in (FORBIDDEN, ErrorCode.DIR_NOT_FOUND)
    assert place.files.explain(attack).decision == "deny"


def test_a_sibling_that_shares_the_beginning_of_the_name_is_outside(place: Place) -> None:
    assert place.refusal(f"{place.sibling}/secret.txt") is FORBIDDEN


@pytest.mark.parametrize("path", ["", "a\0b", "\0", "x" * 256, "a/" * 2048 + "x"])
def test_what_no_file_can_be_called_is_invalid(place: Place, path: str) -> None:
    assert place.refusal(path) is INVALID
    assert place.write_refusal(path) is INVALID


@pytest.mark.parametrize(
    "name", ["．．", "‥", "․․", "／etc／passwd", "%2e%2e", "..\\outside\\secret.txt", "...", "..;"]
)
def test_a_look_alike_of_a_dot_or_slash_is_an_ordinary_name(place: Place, name: str) -> None:
    assert place.files.explain(name).resolved == str(place.root / name)
    assert place.refusal(name) is ErrorCode.FILE_NOT_FOUND


class TestLinks:
    def test_those_that_stay_inside_are_followed(self, place: Place) -> None:
        (place.root / "relative").symlink_to("docs/note.txt")
        (place.root / "absolute").symlink_to(place.root / "docs" / "note.txt")
        (place.root / "around").symlink_to("../work/docs")
        (place.root / "chain").symlink_to("around")

        for path in ("relative", "absolute", "around/note.txt", "chain/note.txt"):
            assert place.files.read(path, 100).path == str(place.root / "docs" / "note.txt")

    @pytest.mark.parametrize("how", ["relative", "absolute"])
    def test_one_to_a_file_outside_is_refused(self, place: Place, how: str) -> None:
        target = place.outside / "secret.txt" if how == "absolute" else "../outside/secret.txt"
        (place.root / "link").symlink_to(target)

        assert place.refusal("link") is FORBIDDEN
        assert place.write_refusal("link") is FORBIDDEN
        assert place.canaries_live()

    def test_one_to_a_directory_outside_is_refused(self, place: Place) -> None:
        (place.root / "link").symlink_to(place.outside)

        assert place.refusal("link/secret.txt") is FORBIDDEN
        assert place.write_refusal("link/secret.txt") is FORBIDDEN
        assert place.write_refusal("link/new.txt") is FORBIDDEN
        assert place.write_refusal("link/deeper/new.txt") is FORBIDDEN
        assert names(place.outside) == ["secret.txt"]

    def test_a_dangling_one_that_leads_outside_creates_nothing_there(self, place: Place) -> None:
        (place.root / "link").symlink_to(place.outside / "new.txt")
        (place.root / "dir").symlink_to(place.outside / "new")

        assert place.refusal("link") is FORBIDDEN
        assert place.write_refusal("link") is FORBIDDEN
        assert place.write_refusal("dir/x") is FORBIDDEN
        assert names(place.outside) == ["secret.txt"]

    def test_a_loop_is_invalid(self, place: Place) -> None:
        (place.root / "one").symlink_to("two")
        (place.root / "two").symlink_to("one")

        assert place.refusal("one") is INVALID
        assert place.refusal("one/deeper") is INVALID

    def test_dots_after_a_link_are_counted_from_where_it_leads(self, place: Place) -> None:
        (place.root / "a" / "b").mkdir(parents=True)
        (place.root / "a" / "here.txt").write_text("here")
        (place.root / "link").symlink_to("a/b")

        assert place.read("link/../here.txt") == b"here"
        assert place.refusal("link/../../../outside/secret.txt") is FORBIDDEN

    def test_one_through_proc_is_refused(self, place: Place) -> None:
        (place.root / "magic").symlink_to(f"/proc/self/root{place.outside}")
        (place.root / "cwd").symlink_to("/proc/self/cwd")

        assert place.refusal("magic/secret.txt") is FORBIDDEN
        assert place.refusal("cwd/pyproject.toml") is FORBIDDEN

    def test_one_into_another_allowed_root_is_followed(self, place: Place) -> None:
        (place.root / "link").symlink_to(place.outside / "secret.txt")
        files = place.workspace(extra_roots=[str(place.outside)])

        assert files.read("link", 100).data == CANARY


class TestSpecialFiles:
    def test_a_fifo_is_invalid_and_does_not_hang(self, place: Place) -> None:
        os.mkfifo(place.root / "fifo")

        assert place.refusal("fifo") is INVALID
        assert place.write_refusal("fifo") is INVALID

    def test_a_socket_is_invalid(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(place.root)  # the path of a socket may not be long
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")

            assert place.refusal("socket") is INVALID
            assert place.write_refusal("socket") is INVALID

    def test_a_device_is_invalid_even_where_its_directory_is_allowed(self, place: Place) -> None:
        files = place.workspace(extra_roots=["/dev"])

        with pytest.raises(ToolError) as caught:
            files.read("/dev/zero", 10)

        assert caught.value.code is INVALID

    def test_a_directory_is_not_read_as_a_file(self, place: Place) -> None:
        assert place.refusal("docs") is ErrorCode.READ_ERROR
        assert place.write_refusal("docs") is ErrorCode.WRITE_ERROR
        assert place.write_refusal(".") is ErrorCode.WRITE_ERROR


class TestMissing:
    def test_a_file_is_told_from_a_directory(self, place: Place) -> None:
        with pytest.raises(ToolError, match=r"^File not found: docs/none.txt$") as file:
            place.read("docs/none.txt")
        with pytest.raises(ToolError, match=r"^Directory not found: tests$") as directory:
            place.read("tests/deep/test_api.py")

        assert (file.value.code, directory.value.code) == (ErrorCode.FILE_NOT_FOUND, ErrorCode.DIR_NOT_FOUND)

    def test_a_file_in_the_place_of_a_directory_is_named(self, place: Place) -> None:
        with pytest.raises(ToolError, match=r"^Not a directory: docs/note.txt$"):
            place.read("docs/note.txt/more")

    def test_a_workspace_that_was_removed_and_made_again_is_found_again(self, place: Place) -> None:
        (place.root / "docs" / "note.txt").unlink()
        (place.root / "docs").rmdir()
        place.root.rmdir()
        place.root.mkdir()
        (place.root / "fresh.txt").write_text("fresh")

        assert place.read("fresh.txt") == b"fresh"


UNPRIVILEGED = """
import os, sys
from toolreeve.core.errors import ToolError
from toolreeve.guard.files.workspace import WorkspaceFiles
files = WorkspaceFiles(sys.argv[1], backend=sys.argv[2])
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    files.read("closed/file", 10)
except ToolError as problem:
    print(problem.code)
"""


def test_what_the_system_refuses_is_a_question_of_permission(place: Place) -> None:
    (place.root / "closed").mkdir(mode=0)

    answer = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, place.root, place.backend], capture_output=True, text=True, check=True
    )

    assert answer.stdout == "E_PERMISSION\n"


spelled = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=12)
pieces = st.one_of(
    st.sampled_from(["..", ".", "", "docs", "out", "in", "note.txt", "work", "outside", "secret.txt"]), spelled
)


@given(parts=st.lists(pieces, min_size=1, max_size=8), absolute=st.booleans())
def test_no_spelling_ever_reads_the_canary(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], absolute: bool
) -> None:
    for backend in ("openat2", "walk"):
        place = _shared_place(tmp_path_factory, backend)
        path = "/".join(parts)
        try:
            data = place.read(f"{place.root}/{path}" if absolute else path)
        except ToolError:
            continue
        assert data == b"inside"


_places: dict[str, Place] = {}


def _shared_place(factory: pytest.TempPathFactory, backend: str) -> Place:
    if backend not in _places:
        place = _places[backend] = Place(factory.mktemp("spelled"), backend=backend)  # type: ignore[arg-type]
        (place.root / "out").symlink_to("../outside")
        (place.root / "in").symlink_to("docs")
    return _places[backend]
