"""A small project to run trials in."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trial.overlay import Ran, run_trial
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.trial.harvest import Harvest
from toolreeve.trial.layer_reader import IsScratch, read_layer


class Project:
    """A workspace and the layers of its trials."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.guards = GuardTable(roots=(str(root),))
        self.ran: list[Ran] = []
        for name in ("a", "b", "src/app.py", "src/old/x", "src/old/y"):
            self.write(name, f"{name}\n")
        (root / "link").symlink_to("a")

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def harvest(self, script: str, is_scratch: IsScratch = lambda _: False) -> Harvest:
        ran = run_trial(self.root, script)
        self.ran.append(ran)
        return read_layer(ran.layer, self.guards, is_scratch)

    @property
    def output(self) -> str:
        return self.ran[-1].output

    def listing(self) -> dict[str, tuple[int, bytes]]:
        """Mode and content of everything."""
        return {
            str(path.relative_to(self.root)): (
                path.lstat().st_mode,
                str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b"",
            )
            for path in sorted(self.root.rglob("*"))
        }


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    root = tmp_path / "project"
    root.mkdir()
    made = Project(root)
    yield made
    for ran in made.ran:
        os.close(ran.layer.upper)
