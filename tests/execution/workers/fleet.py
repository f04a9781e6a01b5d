"""A gateway's configuration, worker processes, and tools whose effects count themselves."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolreeve import Toolreeve
from toolreeve.config import from_settings
from toolreeve.config.sections.policy import Policy
from toolreeve.config.sections.state import State
from toolreeve.config.sections.workers import Workers
from toolreeve.config.sections.workspace import Workspace
from toolreeve.config.settings import Settings
from toolreeve.execution.workers.signing import new_key

TOOLS = '''
import asyncio, os, time
from pathlib import Path
from toolreeve import Context, tool

HERE = Path(__file__).parent


def note(name, number):
    """One line for each time that it really happened."""
    with (HERE / name).open("ab") as file:
        file.write(f"{number} {os.getpid()}\\n".encode())


@tool(danger="medium")
async def once(number: int, seconds: float = 0.0) -> str:
    """Counts itself; must not run twice."""
    note("once.log", number)
    await asyncio.sleep(seconds)
    note("ended.log", number)
    return f"once {number}"


@tool(danger="medium", idempotent=True)
async def again(number: int, seconds: float = 0.0) -> str:
    """Counts itself; may run twice."""
    note("again.log", number)
    await asyncio.sleep(seconds)
    return f"again {number}"


@tool(danger="medium", idempotent=True)
def large(bytes: int) -> str:
    """A result of that many characters."""
    return "x" * bytes


@tool(danger="medium", tags=("heavy",))
async def talk(context: Context, times: int) -> str:
    """Reports progress."""
    for number in range(times):
        context.progress(f"step {number}")
        await asyncio.sleep(0)
    return "talked"


@tool(danger="medium")
def fails(what: str) -> str:
    """Fails."""
    raise RuntimeError(what)


@tool(danger="medium")
async def echo_once(value: int) -> int:
    """Returns it; must not run twice."""
    return value


@tool(danger="medium", idempotent=True)
async def echo_again(value: int) -> int:
    """Returns it; may run twice."""
    return value


@tool(danger="medium")
def where() -> int:
    """The process that ran it."""
    return os.getpid()
'''
TOOL_NAMES = ["once", "again", "large", "fails", "where", "echo_*"]
POOL = "build"
SECRET = "POOL_BUILD_KEY"


class Fleet:
    """Workers of one pool, each a process of its own, beside gateways in this one."""

    def __init__(self, place: Path, url: str, *, kind: str = "hmac", pool: str = POOL, **settings: Any) -> None:
        self.pool = pool
        gateway_key, self.worker_key = new_key(kind)
        self.attach(place, url, gateway_key, **settings)
        self.workspace.mkdir()
        self.tools.write_text(TOOLS)
        self.worker_settings: dict[str, Any] = {}
        self.processes: list[subprocess.Popen[bytes]] = []

    def attach(self, place: Path, url: str, gateway_key: str, **settings: Any) -> None:
        """To a fleet that another process made, with the usual pool."""
        self.pool = getattr(self, "pool", POOL)
        self.place = place
        self.state = State(dir=str(place / "state"))
        self.workspace = place / "work"
        self.tools = self.workspace / "counting.py"
        self.url = url
        self.gateway_key = gateway_key
        self._settings = {"ack_wait": 2.0, "queue_timeout": 20.0, **settings}

    def settings(self, **changes: Any) -> Settings:
        pool = {"tools": TOOL_NAMES, "tags": ["heavy"], "key": f"${{secret:{SECRET}}}"}
        values = {"url": self.url, "pools": {self.pool: pool}, **self._settings, **changes}
        return Settings(
            workspace=Workspace(dir=str(self.workspace)),
            policy=Policy(mode="bypass"),
            state=self.state,
            workers=Workers(**values),
            tool_files=(str(self.tools),),
        )

    def gateway(self, **changes: Any) -> Toolreeve:
        os.environ[SECRET] = self.gateway_key
        return Toolreeve(settings=from_settings(self.settings(**changes)), approve=None)

    def start_worker(self, *options: str, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        number = len(self.processes)
        home = self.place / f"home{number}"
        (home / ".config/toolreeve").mkdir(parents=True)
        (home / ".config/toolreeve/toolreeve.toml").write_text(self.worker_toml(number))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("TOOLREEVE_", "XDG_"))},
            "HOME": str(home),
            SECRET: self.worker_key,
            **(env or {}),
        }
        command = [sys.executable, "-m", "toolreeve", "worker", "--pool", self.pool, "--workspace", str(self.workspace)]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=log, cwd=home)
        self.processes.append(process)
        return process

    def worker_toml(self, number: int) -> str:
        settings = {**self._settings, **self.worker_settings}
        more = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
        return (
            f'tool_files = ["{self.tools}"]\n[state]\ndir = "{self.place / f"worker{number}"}"\n[workers]\n'
            f'url = "{self.url}"\n{more}[workers.pools.{self.pool}]\nkey = "${{secret:{SECRET}}}"\n'
        )

    def log(self, number: int = 0) -> str:
        return (self.place / f"home{number}" / "log").read_text()

    def effects(self, name: str) -> list[int]:
        """What the tools really did, one number for each time."""
        path = self.workspace / name
        return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for(self, ready: Callable[[], bool], seconds: float = 30.0) -> None:
        until = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < until, [self.log(number) for number in range(len(self.processes))]
            time.sleep(0.02)

    def stop(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(10)
