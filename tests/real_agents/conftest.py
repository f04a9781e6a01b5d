"""Fetches the agents, once per version of the list, and gives each test a home of its own."""

import subprocess
from pathlib import Path

import pytest

from tests.peers.programs import ROOT
from tests.real_agents.agents import Place


@pytest.fixture(scope="session", autouse=True)
def agents() -> None:
    subprocess.run([ROOT / ".ci" / "agents"], cwd=ROOT, check=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(home=tmp_path / "home", workspace=tmp_path / "home" / "work")
    place.workspace.mkdir(parents=True)
    settings = place.home / ".config" / "toolreeve" / "toolreeve.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[approval]\nask_client = false\n[limits]\noutput_chars = 20000\n")
    (place.workspace / "notes.txt").write_text("the notes of today\n")
    return place
