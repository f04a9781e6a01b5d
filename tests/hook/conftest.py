"""A user with a home and a project, and hooks as clients start them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from toolreeve.record.audit import Audit, AuditRecord, Filter
from toolreeve.record.store import Store


@dataclass(frozen=True, slots=True)
class HookAnswer:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def decision(self) -> str:
        """As Claude Code reads it."""
        return str(self.json["hookSpecificOutput"]["permissionDecision"])

    @property
    def reason(self) -> str:
        return str(self.json["hookSpecificOutput"]["permissionDecisionReason"])


@dataclass(frozen=True, slots=True)
class Person:
    home: Path
    project: Path
    environ: dict[str, str] = field(default_factory=dict)

    def start(self, *args: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "toolreeve", *args],
            cwd=self.project,
            env=self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, client: str, raw: bytes) -> HookAnswer:
        """The hook of a client, with any bytes as its event."""
        process = self.start("hook", client)
        out, err = process.communicate(raw, timeout=60)
        return HookAnswer(process.returncode, out.decode(), err.decode())

    def hook(self, tool: str, args: dict[str, Any], *, client: str = "claude-code", **changes: Any) -> HookAnswer:
        event = {
            "hook_event_name": "BeforeTool" if client == "gemini" else "PreToolUse",
            "session_id": "s1",
            "cwd": str(self.project),
            "tool_name": tool,
            "tool_input": args,
        }
        return self.send(client, json.dumps(event | changes).encode())

    @contextmanager
    def server(self) -> Iterator[None]:
        """`toolreeve mcp` of this project, ready to answer hooks."""
        process = self.start("mcp")
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for request in (_INITIALIZE, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}):
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                process.stdout.readline()
            yield
        finally:
            process.communicate(timeout=30)

    def cli(self, *args: str) -> str:
        """What a command of the same user prints."""
        process = self.start(*args)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err.decode()
        return out.decode()

    @contextmanager
    def nothing(self) -> Iterator[None]:
        yield

    async def records(self, **wanted: Any) -> list[AuditRecord]:
        store = Store(self.home / ".local/state/toolreeve/toolreeve.db", read_only=True)
        await store.start()
        try:
            return list(await Audit(store).list(Filter(**wanted)))
        finally:
            await store.close()


_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """The runtime directory is not below `tmp_path`, which is too long for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="tr-") as runtime:
        yield new_person(tmp_path, runtime)


def new_person(tmp_path: Path, runtime: str) -> Person:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir(mode=0o700)
    (home / ".config/toolreeve").mkdir(parents=True)
    (home / ".config/toolreeve/toolreeve.toml").write_text("[hooks]\nresident_minutes = 0\n")
    unwanted = ("TOOLREEVE_", "WORKSPACE_", "XDG_", "CLAUDE_", "GEMINI_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return Person(home, project, environ | {"HOME": str(home), "XDG_RUNTIME_DIR": runtime})
