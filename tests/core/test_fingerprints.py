"""Fingerprints: one format for file tools and trials, whose records are compared with each other."""

import os
from pathlib import Path

import pytest

from toolreeve.core.fingerprints import CHUNK, LARGEST_DIGESTED, content_fingerprint, size_fingerprint
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.trial import tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"content" * CHUNK)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", LARGEST_DIGESTED + 1)
    return tmp_path


@pytest.mark.parametrize("name", ["file", "empty", "folder", "link", "large", "missing"])
def test_file_tools_and_trials_know_an_entry_by_the_same_fingerprint(folder: Path, name: str) -> None:
    files = WorkspaceFiles(str(folder))
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert tree.fingerprint(root, name) == files.fingerprint(name)
    finally:
        os.close(root)
        files.close()


def test_content_is_known_however_it_is_cut(folder: Path) -> None:
    files = WorkspaceFiles(str(folder))

    assert files.fingerprint("file") == content_fingerprint([b"content"] * CHUNK)
    files.close()


def test_a_file_too_large_to_read_is_known_by_size_and_time(folder: Path) -> None:
    files = WorkspaceFiles(str(folder))

    assert files.fingerprint("large") == size_fingerprint((folder / "large").stat())
    files.close()
