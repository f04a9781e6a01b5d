"""A workspace between canaries: whatever a test reads from outside, it would find `CANARY`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.place import Place


@pytest.fixture(params=["openat2", "walk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, backend=request.param)
    yield made
    made.close()
