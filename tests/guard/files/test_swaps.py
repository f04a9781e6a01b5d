"""Attacks that swap what is at a path, over and over, while it is read and written."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.guard.workspace import CALL, CANARY, GuardedWorkspace, names, run
from toolreeve.core.errors import ToolError

SECONDS, PATIENCE = 0.6, 30


@contextmanager
def swapping(step: Callable[[], None]) -> Iterator[list[int]]:
    """Runs `step` in a thread as often as it can; the list's one item counts."""
    done = threading.Event()
    count = [0]

    def work() -> None:
        while not done.is_set():
            step()
            count[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield count
    finally:
        done.set()
        thread.join()


def exchange(guarded: GuardedWorkspace, name: str) -> Callable[[], None]:
    """Puts a link to the outside in the place of `name` and back, each in one step."""
    inside, link = guarded.root / name, guarded.root / f"{name}-link"
    link.symlink_to(guarded.outside, target_is_directory=True)
    spare = guarded.root / f"{name}-spare"

    def step() -> None:
        inside.rename(spare)
        link.rename(inside)
        inside.rename(link)
        spare.rename(inside)

    return step


def attack(act: Callable[[], object]) -> tuple[int, int]:
    """Acts again and again for a while, and until it succeeds: how often it did, and how often it was refused."""
    succeeded = refused = 0
    began = time.monotonic()
    while (gone := time.monotonic() - began) < SECONDS or (not succeeded and gone < PATIENCE):
        try:
            act()
            succeeded += 1
        except ToolError:
            refused += 1
    return succeeded, refused


def test_reading_through_a_directory_that_is_swapped_for_a_link_never_reaches_outside(
    guarded: GuardedWorkspace,
) -> None:
    (guarded.root / "docs" / "secret.txt").write_text("inside")
    seen: set[bytes] = set()

    with swapping(exchange(guarded, "docs")) as swaps:
        succeeded, _ = attack(lambda: seen.add(guarded.read("docs/secret.txt")))

    assert swaps[0] > 10
    assert succeeded > 0
    assert seen == {b"inside"}


def test_reading_a_file_that_is_swapped_for_a_link_never_reaches_outside(guarded: GuardedWorkspace) -> None:
    file, link, spare = guarded.root / "file", guarded.root / "link", guarded.root / "spare"
    file.write_text("inside")
    link.symlink_to(guarded.outside / "secret.txt")
    seen: set[bytes] = set()

    def step() -> None:
        file.rename(spare)
        link.rename(file)
        file.rename(link)
        spare.rename(file)

    with swapping(step):
        attack(lambda: seen.add(guarded.read("file")))

    assert seen == {b"inside"}


def test_writing_through_a_directory_that_is_swapped_for_a_link_never_reaches_outside(
    guarded: GuardedWorkspace,
) -> None:
    with swapping(exchange(guarded, "docs")):
        succeeded, refused = attack(
            lambda: run(guarded.files.write(CALL, "docs/secret.txt", b"written", create_dirs=False))
        )

    assert succeeded + refused > 0
    assert names(guarded.outside) == ["secret.txt"]
    assert guarded.canaries_live()
    assert guarded.leftovers() == []


def test_deleting_and_moving_through_a_swapped_directory_never_reaches_outside(guarded: GuardedWorkspace) -> None:
    (guarded.root / "docs" / "secret.txt").write_text("inside")

    def act() -> None:
        run(guarded.files.delete(CALL, "docs/secret.txt"))
        with suppress(ToolError):
            run(guarded.files.write(CALL, "other.txt", b"x"))
        run(guarded.files.move(CALL, "other.txt", "docs/moved.txt", overwrite=True, create_dirs=False))

    with swapping(exchange(guarded, "docs")):
        attack(act)

    assert names(guarded.outside) == ["secret.txt"]
    assert guarded.canaries_live()


def test_walking_a_tree_whose_directories_are_swapped_for_links_never_reaches_outside(
    guarded: GuardedWorkspace,
) -> None:
    (guarded.root / "docs" / "deep").mkdir()
    (guarded.outside / "deep").mkdir()
    (guarded.outside / "deep" / "canary").write_bytes(CANARY)
    seen: set[str] = set()

    with swapping(exchange(guarded, "docs")):
        attack(lambda: seen.update(found.path for found in guarded.files.walk(".")))

    assert not [path for path in seen if path.endswith(("canary", "secret.txt"))]
