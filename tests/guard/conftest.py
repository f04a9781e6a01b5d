"""A workspace between canaries: anything read from outside it is `CANARY`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.workspace import GuardedWorkspace


@pytest.fixture(params=["openat2", "walk"])
def guarded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GuardedWorkspace]:
    made = GuardedWorkspace(tmp_path, backend=request.param)
    yield made
    made.close()
