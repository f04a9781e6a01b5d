"""File tools make no repository that git would obey, neither in some place nor by a move."""

import os
from pathlib import Path

import pytest

from tests.guard.workspace import CALL, GuardedWorkspace, names, run
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.guarded_paths import is_repository

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
