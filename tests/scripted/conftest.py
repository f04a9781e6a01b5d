from pathlib import Path

import pytest

from tests.scripted.scripted_world import ScriptedWorld


@pytest.fixture
def scripted(tmp_path: Path, state_folder: Path) -> ScriptedWorld:
    return ScriptedWorld(tmp_path, state_folder / "state")
