"""The command line as a person has it: a home, a workspace, and what was printed."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolreeve.cli.main import main


@dataclass(frozen=True, slots=True)
class Printed:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Shell:
    """`run` stays in this process; `spawn` starts one, with no terminal."""

    home: Path
    workspace: Path
    read: Callable[[], tuple[str, str]]

    def run(self, *args: str) -> Printed:
        self.read()
        status = main(list(args))
        return Printed(status, *self.read())

    def spawn(self, *args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Printed:
        done = subprocess.run(
            [sys.executable, "-m", "toolreeve", *args],
            cwd=self.workspace,
            env=os.environ | (env or {}),
            input=stdin,
            capture_output=True,
            timeout=60,
            start_new_session=True,
        )
        return Printed(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    home, workspace = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    workspace.mkdir()
    for name in list(os.environ):
        if name.startswith(("TOOLREEVE_", "WORKSPACE_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(workspace)

    def read() -> tuple[str, str]:
        captured = capfd.readouterr()
        return captured.out, captured.err

    return Shell(home, workspace, read)
