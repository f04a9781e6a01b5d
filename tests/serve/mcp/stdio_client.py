"""A client of a server in a child process, over its pipes."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from toolreeve.serve.mcp.protocol import CAPABILITIES_KEY, VERSION_KEY

PATIENCE = 20.0
TOOLREEVE = (sys.executable, "-m", "toolreeve")
CLIENT = {"name": "test", "version": "1"}


def envelope(**capabilities: Any) -> dict[str, Any]:
    return {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: capabilities}


def home(place: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has configured nothing else."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    places = {"HOME": place, "XDG_CONFIG_HOME": place / "config", "XDG_STATE_HOME": place / "state"}
    return {**kept, **{name: str(path) for name, path in places.items()}, **more}


class Child:
    """`heard` are the messages that came while an answer was awaited."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.heard: list[dict[str, Any]] = []
        self._rest = b""
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: Mapping[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def read(self) -> dict[str, Any]:
        """The next line, which must be JSON, within the patience of a test."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("nothing came")
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise EOFError("the server ended")
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def answer_to(self, number: Any) -> dict[str, Any]:
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                return message
            self.heard.append(message)

    def ask(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        self._number += 1
        self.send({"id": self._number, "method": method} | ({} if params is None else {"params": params}))
        return self.answer_to(self._number)

    def initialize(self, **capabilities: Any) -> dict[str, Any]:
        params = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": CLIENT}
        initialized = self.ask("initialize", params)
        self.send({"method": "notifications/initialized"})
        return initialized

    def call(self, tool: str, meta: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        answer = self.ask("tools/call", params if meta is None else params | {"_meta": meta})
        return dict(answer["result"])

    def leave(self) -> tuple[int, str]:
        """Close its stdin: what it exits with, and what it said on stderr."""
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said.decode()
