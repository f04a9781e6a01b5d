"""Every attack is made twice: on a runtime that is root, and on one that is an ordinary user."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.runner import WHO, Runner


def open_folder() -> Path:
    """A folder that any user can reach, as pytest's own cannot be. It goes with the tests."""
    folder = Path(tempfile.mkdtemp(prefix="toolreeve-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session", params=WHO)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    folder = open_folder()
    (folder / "work").mkdir()
    runner = Runner(request.param, folder / "work")
    yield runner
    runner.close()
    shutil.rmtree(folder)
