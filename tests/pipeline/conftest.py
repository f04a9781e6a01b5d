"""Runtimes whose state is on the same disk as the workspace."""

from pathlib import Path

import pytest


@pytest.fixture
def state_folder(tmp_path: Path) -> Path:
    """On the disk of the workspace: what a trial keeps for undo is moved there, not copied."""
    return tmp_path
