"""Attacks on containment, each against both ways of opening a path."""

import os
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guard.workspace import CANARY, GuardedWorkspace, names
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
def test_a_path_that_stays_inside_is_read_however_it_is_spelled(guarded: GuardedWorkspace, spelling: str) -> None:
    assert guarded.files.read(spelling, 100).path == str(guarded.root / "docs" / "note.txt")


def test_an_absolute_path_inside_is_read(guarded: GuardedWorkspace) -> None:
    assert guarded.read(f"{guarded.root}/docs/note.txt") == b"inside"
    assert guarded.read(f"//{guarded.root}//docs/note.txt") == b"inside"


def test_the_workspace_may_be_named_through_a_link_to_it(guarded: GuardedWorkspace) -> None:
    alias = guarded.outside / "alias"
    alias.symlink_to(guarded.root)
    files = WorkspaceFiles(alias, backend=guarded.backend)

    assert files.read(f"{alias}/docs/note.txt", 100).path == str(guarded.root / "docs" / "note.txt")
    assert files.read(f"{guarded.root}/docs/note.txt", 100).data == b"inside"
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
def test_a_way_out_is_refused(guarded: GuardedWorkspace, attack: str) -> None:
    assert guarded.refusal(attack) in (FORBIDDEN, ErrorCode.DIR_NOT_FOUND)
    assert guarded.files.explain(attack).decision == "deny"


def test_a_sibling_that_shares_the_beginning_of_the_name_is_outside(guarded: GuardedWorkspace) -> None:
    assert guarded.refusal(f"{guarded.sibling}/secret.txt") is FORBIDDEN


@pytest.mark.parametrize("path", ["", "a\0b", "\0", "x" * 256, "a/" * 2048 + "x"])
def test_what_no_file_can_be_called_is_invalid(guarded: GuardedWorkspace, path: str) -> None:
    assert guarded.refusal(path) is INVALID
    assert guarded.write_refusal(path) is INVALID


@pytest.mark.parametrize(
    "name", ["．．", "‥", "․․", "／etc／passwd", "%2e%2e", "..\\outside\\secret.txt", "...", "..;"]
)
def test_a_look_alike_of_a_dot_or_slash_is_an_ordinary_name(guarded: GuardedWorkspace, name: str) -> None:
    assert guarded.files.explain(name).resolved == str(guarded.root / name)
    assert guarded.refusal(name) is ErrorCode.FILE_NOT_FOUND


class TestLinks:
    def test_those_that_stay_inside_are_followed(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "relative").symlink_to("docs/note.txt")
        (guarded.root / "absolute").symlink_to(guarded.root / "docs" / "note.txt")
        (guarded.root / "around").symlink_to("../work/docs")
        (guarded.root / "chain").symlink_to("around")

        for path in ("relative", "absolute", "around/note.txt", "chain/note.txt"):
            assert guarded.files.read(path, 100).path == str(guarded.root / "docs" / "note.txt")

    @pytest.mark.parametrize("how", ["relative", "absolute"])
    def test_one_to_a_file_outside_is_refused(self, guarded: GuardedWorkspace, how: str) -> None:
        target = guarded.outside / "secret.txt" if how == "absolute" else "../outside/secret.txt"
        (guarded.root / "link").symlink_to(target)

        assert guarded.refusal("link") is FORBIDDEN
        assert guarded.write_refusal("link") is FORBIDDEN
        assert guarded.canaries_live()

    def test_one_to_a_directory_outside_is_refused(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "link").symlink_to(guarded.outside)

        assert guarded.refusal("link/secret.txt") is FORBIDDEN
        assert guarded.write_refusal("link/secret.txt") is FORBIDDEN
        assert guarded.write_refusal("link/new.txt") is FORBIDDEN
        assert guarded.write_refusal("link/deeper/new.txt") is FORBIDDEN
        assert names(guarded.outside) == ["secret.txt"]

    def test_a_dangling_one_that_leads_outside_creates_nothing_there(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "link").symlink_to(guarded.outside / "new.txt")
        (guarded.root / "dir").symlink_to(guarded.outside / "new")

        assert guarded.refusal("link") is FORBIDDEN
        assert guarded.write_refusal("link") is FORBIDDEN
        assert guarded.write_refusal("dir/x") is FORBIDDEN
        assert names(guarded.outside) == ["secret.txt"]

    def test_a_loop_is_invalid(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "one").symlink_to("two")
        (guarded.root / "two").symlink_to("one")

        assert guarded.refusal("one") is INVALID
        assert guarded.refusal("one/deeper") is INVALID

    def test_dots_after_a_link_are_counted_from_where_it_leads(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "a" / "b").mkdir(parents=True)
        (guarded.root / "a" / "here.txt").write_text("here")
        (guarded.root / "link").symlink_to("a/b")

        assert guarded.read("link/../here.txt") == b"here"
        assert guarded.refusal("link/../../../outside/secret.txt") is FORBIDDEN

    def test_one_through_proc_is_refused(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "magic").symlink_to(f"/proc/self/root{guarded.outside}")
        (guarded.root / "cwd").symlink_to("/proc/self/cwd")

        assert guarded.refusal("magic/secret.txt") is FORBIDDEN
        assert guarded.refusal("cwd/pyproject.toml") is FORBIDDEN

    def test_one_into_another_allowed_root_is_followed(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "link").symlink_to(guarded.outside / "secret.txt")
        files = guarded.workspace(extra_roots=[str(guarded.outside)])

        assert files.read("link", 100).data == CANARY


class TestSpecialFiles:
    def test_a_fifo_is_invalid_and_does_not_hang(self, guarded: GuardedWorkspace) -> None:
        os.mkfifo(guarded.root / "fifo")

        assert guarded.refusal("fifo") is INVALID
        assert guarded.write_refusal("fifo") is INVALID

    def test_a_socket_is_invalid(self, guarded: GuardedWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(guarded.root)  # the path of a socket may not be long
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")

            assert guarded.refusal("socket") is INVALID
            assert guarded.write_refusal("socket") is INVALID

    def test_a_device_is_invalid_even_where_its_directory_is_allowed(self, guarded: GuardedWorkspace) -> None:
        files = guarded.workspace(extra_roots=["/dev"])

        with pytest.raises(ToolError) as caught:
            files.read("/dev/zero", 10)

        assert caught.value.code is INVALID

    def test_a_directory_is_not_read_as_a_file(self, guarded: GuardedWorkspace) -> None:
        assert guarded.refusal("docs") is ErrorCode.READ_ERROR
        assert guarded.write_refusal("docs") is ErrorCode.WRITE_ERROR
        assert guarded.write_refusal(".") is ErrorCode.WRITE_ERROR


class TestMissing:
    def test_a_file_is_distinguished_from_a_directory(self, guarded: GuardedWorkspace) -> None:
        with pytest.raises(ToolError, match=r"^File not found: docs/none.txt$") as file:
            guarded.read("docs/none.txt")
        with pytest.raises(ToolError, match=r"^Directory not found: tests$") as directory:
            guarded.read("tests/deep/test_api.py")

        assert (file.value.code, directory.value.code) == (ErrorCode.FILE_NOT_FOUND, ErrorCode.DIR_NOT_FOUND)

    def test_a_file_in_the_place_of_a_directory_is_named(self, guarded: GuardedWorkspace) -> None:
        with pytest.raises(ToolError, match=r"^Not a directory: docs/note.txt$"):
            guarded.read("docs/note.txt/more")

    def test_a_workspace_that_was_removed_and_made_again_is_found_again(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "docs" / "note.txt").unlink()
        (guarded.root / "docs").rmdir()
        guarded.root.rmdir()
        guarded.root.mkdir()
        (guarded.root / "fresh.txt").write_text("fresh")

        assert guarded.read("fresh.txt") == b"fresh"


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


def test_what_the_system_refuses_is_a_question_of_permission(guarded: GuardedWorkspace) -> None:
    (guarded.root / "closed").mkdir(mode=0)

    answer = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, guarded.root, guarded.backend], capture_output=True, text=True, check=True
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
        guarded = _shared_workspace(tmp_path_factory, backend)
        path = "/".join(parts)
        try:
            data = guarded.read(f"{guarded.root}/{path}" if absolute else path)
        except ToolError:
            continue
        assert data == b"inside"


_places: dict[str, GuardedWorkspace] = {}


def _shared_workspace(factory: pytest.TempPathFactory, backend: str) -> GuardedWorkspace:
    if backend not in _places:
        guarded = _places[backend] = GuardedWorkspace(factory.mktemp("spelled"), backend=backend)  # type: ignore[arg-type]
        (guarded.root / "out").symlink_to("../outside")
        (guarded.root / "in").symlink_to("docs")
    return _places[backend]


def test_a_path_leads_through_forty_links_and_no_more(guarded: GuardedWorkspace) -> None:
    work = guarded.root
    (work / "end.txt").write_text("reached")
    (work / "link0").symlink_to("end.txt")
    for number in range(1, 41):
        (work / f"link{number}").symlink_to(f"link{number - 1}")

    assert guarded.files.read("link39", 100).data == b"reached"
    with pytest.raises(ToolError) as refused:
        guarded.files.stat("link40")
    assert refused.value.code is INVALID


@pytest.mark.parametrize("path", ["missing/../../outside.txt", "missing/deeper/../../../outside.txt"])
def test_a_climb_out_through_a_missing_folder_is_forbidden(guarded: GuardedWorkspace, path: str) -> None:
    with pytest.raises(ToolError) as refused:
        guarded.files.stat(path)
    assert refused.value.code is FORBIDDEN


def test_a_climb_through_a_missing_folder_that_stays_inside_says_what_is_missing(guarded: GuardedWorkspace) -> None:
    with pytest.raises(ToolError, match="Directory not found: missing") as refused:
        guarded.files.read("missing/../docs/note.txt", 100)
    assert refused.value.code is ErrorCode.DIR_NOT_FOUND
