from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    root = tmp_path / "work"
    root.mkdir()
    made = Desk(root)
    yield made
    made.files.close()
