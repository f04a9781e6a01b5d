import os
from pathlib import Path

from toolreeve.core.sparse import data_ranges

BLOCK = 1 << 20


def test_only_ranges_with_data_are_found_however_long_the_holes(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.seek(3 * BLOCK)
        file.write(b"x" * BLOCK)
        file.truncate(9 * BLOCK)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert list(data_ranges(descriptor, 9 * BLOCK)) == [(3 * BLOCK, 4 * BLOCK)]
    finally:
        os.close(descriptor)


def test_an_empty_file_has_no_ranges(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert list(data_ranges(descriptor, 0)) == []
    finally:
        os.close(descriptor)
