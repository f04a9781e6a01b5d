"""A user with a home and a workspace, as files on disk."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolreeve.config import Configuration, load


@dataclass(frozen=True, slots=True)
class User:
    home: Path
    workspace: Path

    @property
    def environ(self) -> dict[str, str]:
        return {"HOME": str(self.home)}

    @property
    def user_file(self) -> Path:
        return self.home / ".config/toolreeve/toolreeve.toml"

    @property
    def project_file(self) -> Path:
        return self.workspace / "toolreeve.toml"

    def says(self, text: str) -> None:
        self.user_file.parent.mkdir(parents=True, exist_ok=True)
        self.user_file.write_text(text)

    def load(self, overrides: Mapping[str, Any] | None = None, **variables: str) -> Configuration:
        return load(overrides, environ=self.environ | variables, cwd=self.workspace)


@pytest.fixture
def user(tmp_path: Path) -> User:
    home, workspace = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    workspace.mkdir()
    return User(home, workspace)
