"""File tools make no repository that git would obey, neither in some place nor by a move or a race."""

import asyncio
import gc
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.guard.workspace import CALL, GuardedWorkspace, names, run
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Change, Changed
from toolreeve.core.guarded_paths import is_repository
from toolreeve.guard.files.workspace import WorkspaceFiles

CONFIG = b"[core]\n\tfsmonitor = id\n"
HEAD = b"ref: refs/heads/main\n"


def plant(directory: Path) -> None:
    for name in ("objects", "refs"):
        (directory / name).mkdir(parents=True)
    (directory / "HEAD").write_bytes(HEAD)
    (directory / "config").write_bytes(CONFIG)


def repositories(top: Path) -> list[str]:
    return [
        os.path.relpath(directory, top)
        for directory, below, files in os.walk(top)
        if is_repository({name.casefold() for name in (*below, *files)})
    ]


@pytest.mark.parametrize("place", ["k/.git/f", ".git/foo", ".git/objects/foo", ".GIT/a/b", "a/.git/b/.git/c"])
@pytest.mark.parametrize("last", ["HEAD", "objects/x"])
def test_no_repository_is_made_below_one(guarded: GuardedWorkspace, place: str, last: str) -> None:
    for name in {"config", "refs/x", "HEAD", "objects/x"} - {last}:
        run(guarded.files.write(CALL, f"{place}/{name}", CONFIG if name == "config" else HEAD))

    with pytest.raises(
        ToolError, match=r"as part of a repository; refused unless workspace\.sensitive_allow"
    ) as caught:
        run(guarded.files.write(CALL, f"{place}/{last}", HEAD))

    assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert repositories(guarded.root) == []


def test_what_git_keeps_in_its_own_directory_is_written(guarded: GuardedWorkspace) -> None:
    plant(guarded.root / ".git")

    for path in (".git/HEAD", ".git/objects/ab/cdef", ".git/logs/HEAD", ".git/refs/remotes/origin/HEAD"):
        run(guarded.files.write(CALL, path, HEAD))


@pytest.mark.parametrize(
    ("place", "source", "to"),
    [
        ("k/.git/f", "k/.git/f", "new"),
        ("k/.git/p/foo", "k/.git/p", "z"),
        ("bare", "bare", "lib/bare"),
        ("a/b/bare", "a", "lib"),
        ("checkout/.git", "checkout", "lib"),
    ],
)
def test_a_directory_with_a_repository_is_not_moved(
    guarded: GuardedWorkspace, place: str, source: str, to: str
) -> None:
    plant(guarded.root / place)

    with pytest.raises(ToolError, match=r"a repository.*workspace\.sensitive_allow") as caught:
        run(guarded.files.move(CALL, source, to))

    assert caught.value.code is ErrorCode.PATH_FORBIDDEN
    assert repositories(guarded.root) == [place]


def test_a_refused_move_leaves_no_descriptor_open(guarded: GuardedWorkspace) -> None:
    plant(guarded.root / "a/bare")
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    with pytest.raises(ToolError) as caught:
        run(guarded.files.move(CALL, "a", "new"))

    assert caught.value.__traceback__ is not None
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_repository_that_the_configuration_names_in_both_places_is_moved(guarded: GuardedWorkspace) -> None:
    plant(guarded.root / "a/bare")

    for allowed in (["a"], ["b"]):
        with pytest.raises(ToolError, match="a repository"):
            run(guarded.workspace(sensitive_allow=allowed).move(CALL, "a", "b"))
    run(guarded.workspace(sensitive_allow=["a/bare", "b/bare"]).move(CALL, "a", "b"))

    assert repositories(guarded.root) == ["b/bare"]


def test_a_directory_with_less_than_a_repository_is_moved(guarded: GuardedWorkspace) -> None:
    for path in ("a/HEAD", "a/b/objects/x", "a/config"):
        run(guarded.files.write(CALL, path, b""))

    run(guarded.files.move(CALL, "a", "new"))

    assert names(guarded.root / "new") == ["HEAD", "b", "config"]


class Meeting:
    """Keeps nothing; each change waits a while, checked and not yet made, until as many as expected have come."""

    largest = 0

    def __init__(self, expected: int) -> None:
        self._missing = expected
        self.met = asyncio.Event()

    async def note(self, call: ToolCall, change: Change) -> None:
        self._missing -= 1
        if self._missing <= 0:
            self.met.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.met.wait(), 0.2)

    def save(self, descriptor: int) -> None:
        pass

    def standing(self, *, call_id: str | None = None, session: str | None = None) -> Sequence[Change]:
        return ()


Start = Callable[[WorkspaceFiles], Coroutine[Any, Any, Changed]]


def write_head(files: WorkspaceFiles) -> Coroutine[Any, Any, Changed]:
    return files.write(CALL, "z/HEAD", HEAD)


PAIRS: dict[str, tuple[Start, Start]] = {
    "two writes": (write_head, lambda files: files.write(CALL, "z/objects/x", b"")),
    "a moved file": (
        lambda files: files.move(CALL, "mine/file", "z/HEAD"),
        lambda files: files.write(CALL, "z/objects/x", b""),
    ),
    "a moved directory": (write_head, lambda files: files.move(CALL, "mine/sub", "z/objects")),
    "a link": (write_head, lambda files: files.link(CALL, "z/objects", "../mine")),
    "a moved tree": (
        lambda files: files.write(CALL, "new/sub/HEAD", HEAD),
        lambda files: files.move(CALL, "mine", "new"),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_two_changes_at_once_make_no_repository(guarded: GuardedWorkspace, pair: str) -> None:
    for path in ("z/config", "z/refs/x", "mine/file", "mine/sub/objects/x"):
        run(guarded.files.write(CALL, path, CONFIG))
    files = guarded.workspace(keep=Meeting(2))

    async def at_once() -> list[Changed | BaseException]:
        return await asyncio.gather(*(start(files) for start in PAIRS[pair]), return_exceptions=True)

    results = run(at_once())

    assert sorted(type(result).__name__ for result in results) == ["Changed", "ToolError"]
    assert repositories(guarded.root) == []


@pytest.mark.parametrize("directory", ["src", "src/hooks", "src/objects"])
def test_ordinary_writes_do_not_wait_for_each_other(guarded: GuardedWorkspace, directory: str) -> None:
    (guarded.root / directory).mkdir(parents=True)
    meeting = Meeting(2)
    files = guarded.workspace(keep=meeting)

    async def at_once() -> None:
        await asyncio.gather(*(files.write(CALL, f"{directory}/{n}", b"") for n in range(8)))

    run(at_once())

    assert meeting.met.is_set()
