import gc
import os
import resource
import tracemalloc

import pytest

from tests.guard.workspace import GuardedWorkspace
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.files import Bounds, Kind, Listed, PathFinding
from toolreeve.core.openat2 import has_openat2
from toolreeve.guard.files.workspace import WorkspaceFiles


def test_a_root_that_does_not_exist_is_a_misuse() -> None:
    with pytest.raises(ToolreeveError, match="'/no/such/place' is not a directory"):
        WorkspaceFiles("/no/such/place")


def test_the_fastest_way_of_opening_is_chosen(guarded: GuardedWorkspace) -> None:
    files = WorkspaceFiles(guarded.root)

    assert files.backend == ("openat2" if has_openat2() else "walk")
    files.close()


def test_resolving_follows_links_and_minds_no_missing_files(guarded: GuardedWorkspace) -> None:
    (guarded.root / "link").symlink_to("docs")

    assert guarded.files.resolve("link/new/deep.txt") == str(guarded.root / "docs" / "new" / "deep.txt")
    assert guarded.files.relative(guarded.files.resolve("link/note.txt")) == "docs/note.txt"
    assert guarded.files.relative(guarded.files.resolve("docs/../link/note.txt")) == "docs/note.txt"
    assert guarded.files.relative(guarded.files.resolve("docs/./note.txt")) == "docs/note.txt"
    assert guarded.files.relative(guarded.files.resolve(".")) == "."


def test_what_is_at_the_end_of_a_link_is_judged_when_resolving(guarded: GuardedWorkspace) -> None:
    (guarded.root / ".env").write_text("x")
    (guarded.root / "plain").symlink_to(".env")

    for path in (".env", "plain"):
        with pytest.raises(ToolError) as refused:
            guarded.files.resolve(path)
        assert refused.value.code is ErrorCode.PATH_FORBIDDEN


def test_the_target_of_a_forbidden_path_is_its_spelling(guarded: GuardedWorkspace) -> None:
    (guarded.root / "link").symlink_to("docs")

    assert guarded.files.target("link/note.txt") == str(guarded.root / "docs" / "note.txt")
    assert guarded.files.target("../../etc/passwd") == os.path.normpath(f"{guarded.root}/../../etc/passwd")
    assert guarded.files.target("/etc/passwd") == "/etc/passwd"


def test_a_finding_says_why_without_opening_anything(guarded: GuardedWorkspace) -> None:
    (guarded.root / ".env").write_text("x")

    assert guarded.files.explain("docs/note.txt") == PathFinding(
        value="docs/note.txt",
        decision="allow",
        reason="is inside the workspace",
        resolved=str(guarded.root / "docs" / "note.txt"),
    )
    assert guarded.files.explain("new").reason == "is inside the workspace; nothing is there yet"
    denied = guarded.files.explain(".env")
    assert (denied.decision, denied.code) == ("deny", "E_PATH_FORBIDDEN")
    assert guarded.files.explain("policy.yaml").decision == "allow"
    assert guarded.files.explain("policy.yaml", change=True).decision == "deny"


def test_the_home_directory_is_known_only_if_configured(guarded: GuardedWorkspace) -> None:
    files = guarded.workspace(home=str(guarded.root))

    assert files.read("~/docs/note.txt", 10).data == b"inside"
    assert guarded.files.explain("~/docs/note.txt").code == "E_PATH_FORBIDDEN"


def test_what_is_there_is_reported_with_links_followed(guarded: GuardedWorkspace) -> None:
    (guarded.root / "link").symlink_to("docs")
    (guarded.root / "dangling").symlink_to("nothing")

    found = [guarded.files.stat(path) for path in ("docs/note.txt", "link", "dangling", "none", "none/none")]

    assert [each.kind if each else None for each in found] == [Kind.FILE, Kind.DIRECTORY, None, None, None]


def test_no_descriptor_is_left_open(guarded: GuardedWorkspace) -> None:
    (guarded.root / "link").symlink_to("docs/note.txt")
    (guarded.root / "out").symlink_to(guarded.outside)
    gc.collect()  # what earlier tests left is not counted
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    for path in ("docs/note.txt", "link", "out/secret.txt", "none/none", "docs", "../x", "docs/note.txt/x"):
        for act in (
            lambda p: guarded.files.read(p, 10),
            guarded.files.stat,
            guarded.files.resolve,
            guarded.files.fingerprint,
        ):
            try:
                act(path)
            except ToolError:
                continue
    list(guarded.files.walk("."))
    next(iter(guarded.files.walk(".")))
    guarded.files.walk(".")

    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


class TestListing:
    def test_entries_are_sorted_and_links_shown_as_what_they_lead_to(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "b.txt").write_text("four")
        (guarded.root / "link").symlink_to("docs/note.txt")
        (guarded.root / "out").symlink_to(guarded.outside)
        (guarded.root / ".hidden").touch()

        listing = guarded.files.list(".", limit=10)

        assert [(entry.name, entry.is_dir, entry.is_link) for entry in listing.entries] == [
            ("b.txt", False, False),
            ("docs", True, False),
            ("link", False, True),
            ("out", False, True),
        ]
        assert listing.entries[0] == Listed(name="b.txt", is_dir=False, size=4)
        assert (listing.total, listing.more) == (4, False)
        assert guarded.files.list(".", limit=10, hidden=True).total == 5

    def test_a_listing_goes_on_after_a_name(self, guarded: GuardedWorkspace) -> None:
        for number in range(10):
            (guarded.root / "docs" / f"{number}").touch()

        first = guarded.files.list("docs", limit=4)
        second = guarded.files.list("docs", limit=100, after=first.entries[-1].name)

        assert [entry.name for entry in first.entries] == ["0", "1", "2", "3"]
        assert first.more
        assert [entry.name for entry in second.entries] == ["4", "5", "6", "7", "8", "9", "note.txt"]
        assert (second.total, second.more) == (11, False)

    def test_a_huge_directory_is_listed_in_bounded_memory(self, guarded: GuardedWorkspace) -> None:
        for number in range(20_000):
            os.close(os.open(f"{guarded.root}/docs/{number:06}", os.O_CREAT | os.O_WRONLY))

        tracemalloc.start()
        listing = guarded.files.list("docs", limit=1000)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert [listing.entries[0].name, listing.entries[-1].name] == ["000000", "000999"]
        assert (listing.total, listing.more) == (20_001, True)
        assert peak < 2_000_000

    def test_a_file_or_nothing_is_not_listed(self, guarded: GuardedWorkspace) -> None:
        for path in ("docs/note.txt", "none"):
            with pytest.raises(ToolError) as caught:
                guarded.files.list(path, limit=10)
            assert caught.value.code is ErrorCode.DIR_NOT_FOUND


class TestWalking:
    def test_shallow_things_come_first_and_links_are_not_followed(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "a" / "b").mkdir(parents=True)
        (guarded.root / "a" / "b" / "deep").touch()
        (guarded.root / "z").touch()
        (guarded.root / "out").symlink_to(guarded.outside)
        (guarded.root / ".env").touch()

        assert [found.path for found in guarded.files.walk(".", hidden=True)] == [
            "a",
            "docs",
            "out",
            "z",
            "a/b",
            "docs/note.txt",
            "a/b/deep",
        ]

    def test_bounds_end_a_walk_and_are_reported(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "a" / "b" / "c").mkdir(parents=True)

        entries = guarded.files.walk(".", bounds=Bounds(entries=2))
        depth = guarded.files.walk(".", bounds=Bounds(depth=1))
        seconds = guarded.files.walk(".", bounds=Bounds(seconds=-1))

        assert [found.path for found in entries] == ["a", "docs"]
        assert [found.path for found in depth] == ["a", "docs"]
        assert list(seconds)
        assert (entries.cut, depth.cut, seconds.cut) == ("entries", "depth", "seconds")

    def test_names_can_be_skipped(self, guarded: GuardedWorkspace) -> None:
        (guarded.root / "node_modules" / "x").mkdir(parents=True)

        assert [found.path for found in guarded.files.walk(".", skip=frozenset({"node_modules"}))] == [
            "docs",
            "docs/note.txt",
        ]

    def test_a_search_base_is_walked_only_if_it_is_one(self, guarded: GuardedWorkspace) -> None:
        files = guarded.workspace(search_bases=[str(guarded.outside)])

        assert [found.path for found in files.walk(str(guarded.outside), search_base=True)] == ["secret.txt"]
        with pytest.raises(ToolError) as caught:
            files.walk(str(guarded.root), search_base=True)
        assert caught.value.code is ErrorCode.PATH_FORBIDDEN
        with pytest.raises(ToolError):
            files.read(str(guarded.outside / "secret.txt"), 10)


def test_a_search_that_the_system_does_not_let_begin_is_a_failed_search(guarded: GuardedWorkspace) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(ToolError) as caught:
            guarded.files.walk(".")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert caught.value.code is ErrorCode.SEARCH_ERROR
