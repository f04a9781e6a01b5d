from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tools.file_tools import FileTools


@pytest.fixture
def file_tools(tmp_path: Path) -> Iterator[FileTools]:
    root = tmp_path / "work"
    root.mkdir()
    made = FileTools(root)
    yield made
    made.files.close()
