"""Somebody exchanges what stands at a path, over and over, while it is read and written."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.guard.place import CALL, CANARY, Place, names, run
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


def exchange(place: Place, name: str) -> Callable[[], None]:
    """Puts a link to the outside in the place of `name` and back, each in one step."""
    inside, link = place.root / name, place.root / f"{name}-link"
    link.symlink_to(place.outside, target_is_directory=True)
    spare = place.root / f"{name}-spare"

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


def test_reading_through_a_directory_that_is_swapped_for_a_link_never_reaches_outside(place: Place) -> None:
    (place.root / "docs" / "secret.txt").write_text("inside")
    seen: set[bytes] = set()

    with swapping(exchange(place, "docs")) as swaps:
        succeeded, _ = attack(lambda: seen.add(place.read("docs/secret.txt")))

    assert swaps[0] > 10
    assert succeeded > 0
    assert seen == {b"inside"}


def test_reading_a_file_that_is_swapped_for_a_link_never_reaches_outside(place: Place) -> None:
    file, link, spare = place.root / "file", place.root / "link", place.root / "spare"
    file.write_text("inside")
    link.symlink_to(place.outside / "secret.txt")
    seen: set[bytes] = set()

    def step() -> None:
        file.rename(spare)
        link.rename(file)
        file.rename(link)
        spare.rename(file)

    with swapping(step):
        attack(lambda: seen.add(place.read("file")))

    assert seen == {b"inside"}


def test_writing_through_a_directory_that_is_swapped_for_a_link_never_reaches_outside(place: Place) -> None:
    with swapping(exchange(place, "docs")):
        succeeded, refused = attack(
            lambda: run(place.files.write(CALL, "docs/secret.txt", b"written", create_dirs=False))
        )

    assert succeeded + refused > 0
    assert names(place.outside) == ["secret.txt"]
    assert place.canaries_live()
    assert place.leftovers() == []


def test_deleting_and_moving_through_a_swapped_directory_never_reaches_outside(place: Place) -> None:
    (place.root / "docs" / "secret.txt").write_text("inside")

    def act() -> None:
        run(place.files.delete(CALL, "docs/secret.txt"))
        with suppress(ToolError):
            run(place.files.write(CALL, "other.txt", b"x"))
        run(place.files.move(CALL, "other.txt", "docs/moved.txt", overwrite=True, create_dirs=False))

    with swapping(exchange(place, "docs")):
        attack(act)

    assert names(place.outside) == ["secret.txt"]
    assert place.canaries_live()


def test_walking_a_tree_whose_directories_are_swapped_for_links_never_reaches_outside(place: Place) -> None:
    (place.root / "docs" / "deep").mkdir()
    (place.outside / "deep").mkdir()
    (place.outside / "deep" / "canary").write_bytes(CANARY)
    seen: set[str] = set()

    with swapping(exchange(place, "docs")):
        attack(lambda: seen.update(found.path for found in place.files.walk(".")))

    assert not [path for path in seen if path.endswith(("canary", "secret.txt"))]
