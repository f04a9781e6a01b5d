"""Escapes: each attack is a program that really tries, on a runtime of root and of a user."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.attacks import ATTACKS, HARMLESS, PRELUDE
from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import UNPRIVILEGED_UID, WHO, Runner


class Prey:
    """What an attacker would like to have, owned by whoever runs the runtime."""

    def __init__(self, folder: Path, who: str) -> None:
        self.workspace = folder / "work"
        self.workspace.mkdir()
        for name in (
            ".git/hooks/pre-commit",
            ".git/config",
            ".mcp.json",
            "toolreeve.toml",
            ".vscode/tasks.json",
            "file",
            ".env",
        ):
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / name).write_text("mine")
        home = folder / "home"
        home.mkdir(mode=0o700)
        (home / "secret").write_text("a secret")
        other = folder / "other"
        other.write_text("not for programs")
        shared = Path("/dev/shm") / folder.name
        shared.write_text("shared")
        self._owned = [home, home / "secret", shared]
        if who == "user" and os.geteuid() == 0:
            for path in self._owned:
                os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
        self._victim = subprocess.Popen(
            ["sleep", "600"], user=UNPRIVILEGED_UID if who == "user" and os.geteuid() == 0 else None
        )
        self._listeners = [
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX),
        ]
        self._listeners[1].bind(f"\0{folder.name}")
        self._listeners[2].bind(str(folder / "docker.sock"))
        for listener in self._listeners[1:]:
            listener.listen()
        (folder / "docker.sock").chmod(0o777)
        self.shared = shared
        self.environment = {
            "SECRET": str(home / "secret"),
            "OTHER": str(other),
            "OUTSIDE": str(home),
            "SHARED": str(shared),
            "PORT": str(self._listeners[0].getsockname()[1]),
            "ABSTRACT": folder.name,
            "DOCKER": str(folder / "docker.sock"),
            "VICTIM": str(self._victim.pid),
            "RUNTIME": str(os.getpid()),
        }

    def close(self) -> None:
        self._victim.kill()
        self._victim.wait()
        for listener in self._listeners:
            listener.close()
        self.shared.unlink()


@pytest.fixture(scope="module", params=WHO)
def besieged(request: pytest.FixtureRequest) -> Iterator[tuple[Runner, Prey]]:
    folder = open_folder()
    prey = Prey(folder, request.param)
    runner = Runner(request.param, prey.workspace, layout={"hidden": [str(prey.workspace / ".env")]})
    prey.environment["RUNTIME"] = str(runner.process.pid)
    yield runner, prey
    runner.close()
    prey.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_gets_out(besieged: tuple[Runner, Prey], attack: str) -> None:
    runner, prey = besieged

    ended = runner.python(PRELUDE + ATTACKS[attack], environment=prey.environment)

    assert ended.get("sandbox") == "full", ended
    assert "ESCAPED" not in ended["stdout"], ended["stdout"]
    assert "blocked" in ended["stdout"], ended
    assert ended["stderr"] == ""


@pytest.mark.parametrize("attack", HARMLESS)
def test_the_same_attack_succeeds_where_nothing_confines_it(attack: str) -> None:
    folder = open_folder()
    prey = Prey(folder, "root")
    try:
        ended = subprocess.run(
            [sys.executable, "-c", PRELUDE + ATTACKS[attack]],
            cwd=prey.workspace,
            env=prey.environment,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        prey.close()
        shutil.rmtree(folder)

    assert "ESCAPED" in ended.stdout, ended
