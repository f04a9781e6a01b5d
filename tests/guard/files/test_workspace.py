import os
import tracemalloc

import pytest

from tests.guard.place import Place
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.files import Bounds, Kind, Listed, PathFinding
from toolreeve.guard.files.openat2 import has_openat2
from toolreeve.guard.files.workspace import WorkspaceFiles


def test_a_root_that_does_not_exist_is_a_misuse() -> None:
    with pytest.raises(ToolreeveError, match="'/no/such/place' is not a directory"):
        WorkspaceFiles("/no/such/place")


def test_the_fastest_way_of_opening_is_chosen(place: Place) -> None:
    files = WorkspaceFiles(place.root)

    assert files.backend == ("openat2" if has_openat2() else "walk")
    files.close()


def test_resolving_follows_links_and_minds_no_missing_files(place: Place) -> None:
    (place.root / "link").symlink_to("docs")

    assert place.files.resolve("link/new/deep.txt") == str(place.root / "docs" / "new" / "deep.txt")
    assert place.files.relative(place.files.resolve("link/note.txt")) == "docs/note.txt"
    assert place.files.relative(place.files.resolve(".")) == "."


def test_the_target_of_a_forbidden_path_is_its_spelling(place: Place) -> None:
    (place.root / "link").symlink_to("docs")

    assert place.files.target("link/note.txt") == str(place.root / "docs" / "note.txt")
    assert place.files.target("../../etc/passwd") == os.path.normpath(f"{place.root}/../../etc/passwd")
    assert place.files.target("/etc/passwd") == "/etc/passwd"


def test_a_finding_says_why_without_opening_anything(place: Place) -> None:
    (place.root / ".env").write_text("x")

    assert place.files.explain("docs/note.txt") == PathFinding(
        value="docs/note.txt",
        decision="allow",
        reason="is inside the workspace",
        resolved=str(place.root / "docs" / "note.txt"),
    )
    assert place.files.explain("new").reason == "is inside the workspace; nothing is there yet"
    denied = place.files.explain(".env")
    assert (denied.decision, denied.code) == ("deny", "E_PATH_FORBIDDEN")
    assert place.files.explain("policy.yaml").decision == "allow"
    assert place.files.explain("policy.yaml", change=True).decision == "deny"


def test_the_home_directory_is_known_only_if_told(place: Place) -> None:
    files = place.workspace(home=str(place.root))

    assert files.read("~/docs/note.txt", 10).data == b"inside"
    assert place.files.explain("~/docs/note.txt").code == "E_PATH_FORBIDDEN"


def test_what_is_there_is_told_with_links_followed(place: Place) -> None:
    (place.root / "link").symlink_to("docs")
    (place.root / "dangling").symlink_to("nothing")

    found = [place.files.stat(path) for path in ("docs/note.txt", "link", "dangling", "none", "none/none")]

    assert [each.kind if each else None for each in found] == [Kind.FILE, Kind.DIRECTORY, None, None, None]


def test_no_descriptor_is_left_open(place: Place) -> None:
    (place.root / "link").symlink_to("docs/note.txt")
    (place.root / "out").symlink_to(place.outside)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    for path in ("docs/note.txt", "link", "out/secret.txt", "none/none", "docs", "../x", "docs/note.txt/x"):
        for act in (lambda p: place.files.read(p, 10), place.files.stat, place.files.resolve, place.files.fingerprint):
            try:
                act(path)
            except ToolError:
                continue
    list(place.files.walk("."))
    next(iter(place.files.walk(".")))
    place.files.walk(".")

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


class TestListing:
    def test_entries_are_sorted_and_links_told_as_what_they_lead_to(self, place: Place) -> None:
        (place.root / "b.txt").write_text("four")
        (place.root / "link").symlink_to("docs/note.txt")
        (place.root / "out").symlink_to(place.outside)
        (place.root / ".hidden").touch()

        listing = place.files.list(".", limit=10)

        assert [(entry.name, entry.is_dir, entry.is_link) for entry in listing.entries] == [
            ("b.txt", False, False),
            ("docs", True, False),
            ("link", False, True),
            ("out", False, True),
        ]
        assert listing.entries[0] == Listed(name="b.txt", is_dir=False, size=4)
        assert (listing.total, listing.more) == (4, False)
        assert place.files.list(".", limit=10, hidden=True).total == 5

    def test_a_listing_goes_on_after_a_name(self, place: Place) -> None:
        for number in range(10):
            (place.root / "docs" / f"{number}").touch()

        first = place.files.list("docs", limit=4)
        second = place.files.list("docs", limit=100, after=first.entries[-1].name)

        assert [entry.name for entry in first.entries] == ["0", "1", "2", "3"]
        assert first.more
        assert [entry.name for entry in second.entries] == ["4", "5", "6", "7", "8", "9", "note.txt"]
        assert (second.total, second.more) == (11, False)

    def test_a_huge_directory_is_listed_in_bounded_memory(self, place: Place) -> None:
        for number in range(20_000):
            os.close(os.open(f"{place.root}/docs/{number:06}", os.O_CREAT | os.O_WRONLY))

        tracemalloc.start()
        listing = place.files.list("docs", limit=1000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert [listing.entries[0].name, listing.entries[-1].name] == ["000000", "000999"]
        assert (listing.total, listing.more) == (20_001, True)
        assert peak < 2_000_000

    def test_a_file_or_nothing_is_not_listed(self, place: Place) -> None:
        for path in ("docs/note.txt", "none"):
            with pytest.raises(ToolError) as caught:
                place.files.list(path, limit=10)
            assert caught.value.code is ErrorCode.DIR_NOT_FOUND


class TestWalking:
    def test_shallow_things_come_first_and_links_are_not_followed(self, place: Place) -> None:
        (place.root / "a" / "b").mkdir(parents=True)
        (place.root / "a" / "b" / "deep").touch()
        (place.root / "z").touch()
        (place.root / "out").symlink_to(place.outside)
        (place.root / ".env").touch()

        assert [found.path for found in place.files.walk(".", hidden=True)] == [
            "a",
            "docs",
            "out",
            "z",
            "a/b",
            "docs/note.txt",
            "a/b/deep",
        ]

    def test_bounds_end_a_walk_and_are_told(self, place: Place) -> None:
        (place.root / "a" / "b" / "c").mkdir(parents=True)

        entries = place.files.walk(".", bounds=Bounds(entries=2))
        depth = place.files.walk(".", bounds=Bounds(depth=1))
        seconds = place.files.walk(".", bounds=Bounds(seconds=-1))

        assert [found.path for found in entries] == ["a", "docs"]
        assert [found.path for found in depth] == ["a", "docs"]
        assert list(seconds)
        assert (entries.cut, depth.cut, seconds.cut) == ("entries", "depth", "seconds")

    def test_names_can_be_skipped(self, place: Place) -> None:
        (place.root / "node_modules" / "x").mkdir(parents=True)

        assert [found.path for found in place.files.walk(".", skip=frozenset({"node_modules"}))] == [
            "docs",
            "docs/note.txt",
        ]

    def test_a_search_base_is_walked_only_if_it_is_one(self, place: Place) -> None:
        files = place.workspace(search_bases=[str(place.outside)])

        assert [found.path for found in files.walk(str(place.outside), search_base=True)] == ["secret.txt"]
        with pytest.raises(ToolError) as caught:
            files.walk(str(place.root), search_base=True)
        assert caught.value.code is ErrorCode.PATH_FORBIDDEN
        with pytest.raises(ToolError):
            files.read(str(place.outside / "secret.txt"), 10)
