"""Small files are written whole, durably and for their owner alone."""

import os
import stat
import threading
from pathlib import Path

import pytest

from toolreeve.core.atomic import create_private, write_private


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_and_its_directory_are_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"

    write_private(path, b"content")

    assert path.read_bytes() == b"content"
    assert (mode_of(path), mode_of(path.parent)) == (0o600, 0o700)


def test_a_given_mode_holds_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_private(tmp_path / "file", b"", mode=0o644)
    finally:
        os.umask(before)

    assert mode_of(tmp_path / "file") == 0o644


def test_a_failed_check_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse() -> None:
        raise RuntimeError("changed meanwhile")

    with pytest.raises(RuntimeError, match="changed meanwhile"):
        write_private(path, b"new", check=refuse)

    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = {b"a" * 100_000, b"b" * 200_000}
    write_private(path, b"a" * 100_000)
    stopped = threading.Event()
    seen: set[bytes] = set()

    def read() -> None:
        while not stopped.is_set():
            seen.add(path.read_bytes())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(10):
        for content in contents:
            write_private(path, content)
    stopped.set()
    reader.join()

    assert seen <= contents


def test_the_first_creator_wins_and_the_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state" / "key"
    create_private(path, b"first")

    with pytest.raises(FileExistsError):
        create_private(path, b"second")

    assert path.read_bytes() == b"first"
    assert mode_of(path) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["key"]
