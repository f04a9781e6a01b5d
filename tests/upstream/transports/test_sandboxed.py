"""Servers inside the sandbox: they answer as outside, reach nothing else, and end with it."""

import asyncio
import gc
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.conftest import open_folder
from tests.upstream.transports.test_stdio import PATIENCE, alive
from toolreeve.core.mcp import Era
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.sandboxed import SandboxPlacement, read_grant
from toolreeve.upstream.transports.stdio import StdioTransport
from toolreeve.upstream.transports.transport import ServerUnavailable

LONG = f"61.{os.getpid()}"
"""Nobody else on this machine sleeps for just as long."""

SERVER = """
import json, os, socket, subprocess, sys

def tried(what):
    try:
        return what()
    except OSError as problem:
        return type(problem).__name__

for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "sandboxed_session"}}
    if asked["method"] == "tools/call":
        subprocess.Popen(["sleep", sys.argv[1]], start_new_session=True)
        result = {
            "home": tried(lambda: os.listdir(asked["params"]["home"])),
            "environment": dict(os.environ),
            "network": tried(lambda: socket.create_connection(("127.0.0.1", asked["params"]["port"]), 5) and "reached"),
            "written": tried(lambda: open("mark", "w").write("here")),
        }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.fixture
def workspace() -> Path:
    folder = open_folder()
    (folder / "work").mkdir(mode=0o777)
    return folder / "work"


@pytest.fixture
async def sandbox(workspace: Path) -> AsyncIterator[Sandbox]:
    readable = tuple(dict.fromkeys((sys.base_prefix, sys.prefix)))
    sandbox = Sandbox(Layout(workspace=str(workspace), readable=readable), Strictness(require="full", concurrency=1))
    yield sandbox
    await sandbox.close()


def sandboxed_session(sandbox: Sandbox | None, workspace: Path, *argv: str, **table: Any) -> UpstreamSession:
    placement = SandboxPlacement(grant=read_grant(table), workspace=str(workspace), sandbox=sandbox)
    transport = StdioTransport(
        argv or [sys.executable, "-S", "-c", SERVER, LONG], environment={"TOKEN": "x"}, placement=placement
    )
    return UpstreamSession(transport, client_info={})


def sleepers() -> list[int]:
    """What the server left running, wherever it is."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_bytes() == f"sleep\0{LONG}\0".encode():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


async def begun() -> list[int]:
    """A program that was just started has, for a moment, no name yet."""
    async with asyncio.timeout(PATIENCE):
        while not (found := sleepers()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def test_a_server_in_the_sandbox_answers_and_reaches_nothing_else(sandbox: Sandbox, workspace: Path) -> None:
    (workspace.parent / "secret").write_text("ours")
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    session = sandboxed_session(sandbox, workspace)
    await session.open(Era.LEGACY, PATIENCE)

    found = await session.request("tools/call", {"home": str(workspace.parent), "port": port}, timeout=PATIENCE)
    left = await begun()
    await session.close()
    listener.close()

    assert found["home"] == ["work"]
    assert found["network"] != "reached"
    assert found["environment"]["TOKEN"] == "x"
    assert set(found["environment"]) <= {"TOKEN", "PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE"}
    assert (workspace / "mark").read_text() == "here"
    assert len(left) == 1
    assert alive(left) == []


async def test_a_server_does_not_take_the_place_of_a_command(sandbox: Sandbox, workspace: Path) -> None:
    sessions = [sandboxed_session(sandbox, workspace) for _ in range(3)]
    await asyncio.gather(*(session.open(Era.LEGACY, PATIENCE) for session in sessions))

    ended = await sandbox.run(ProcessRequest(argv=("echo", "hello"), directory=str(workspace)))

    assert ended.stdout == b"hello\n"
    await asyncio.gather(*(session.close() for session in sessions))


async def test_a_server_in_the_sandbox_that_does_not_end_is_ended(sandbox: Sandbox, workspace: Path) -> None:
    greeting = json.dumps({"id": 1, "result": {"protocolVersion": "2025-11-25"}})
    stubborn = "trap '' TERM; read x; echo \"$1\"; while :; do sleep $2; done"
    session = sandboxed_session(sandbox, workspace, "sh", "-c", stubborn, "sh", greeting, LONG)
    await session.open(Era.LEGACY, PATIENCE)

    await session.close()

    assert sleepers() == []


async def test_a_server_that_outlives_its_sandbox_is_lost(sandbox: Sandbox, workspace: Path) -> None:
    session = sandboxed_session(sandbox, workspace)
    await session.open(Era.LEGACY, PATIENCE)

    await sandbox.close()
    with pytest.raises(ServerUnavailable):
        await session.request("tools/list", {}, timeout=PATIENCE)
    await session.close()


async def test_a_server_that_uses_too_much_memory_is_ended(sandbox: Sandbox, workspace: Path) -> None:
    greedy = "import time\ninput()\nx = bytearray(400 << 20)\ntime.sleep(60)"
    session = sandboxed_session(sandbox, workspace, sys.executable, "-S", "-c", greedy, max_memory_mb=100)

    with pytest.raises(ServerUnavailable, match=r"it was stopped|it was ended|it ended|MemoryError"):
        await session.open(Era.LEGACY, PATIENCE)


async def test_a_program_that_is_not_there_says_so(sandbox: Sandbox, workspace: Path) -> None:
    with pytest.raises(ServerUnavailable, match="it cannot be started: No such file or directory"):
        await sandboxed_session(sandbox, workspace, "no-such-program").open(Era.LEGACY, PATIENCE)


async def test_a_server_never_starts_outside_where_it_cannot_be_sandboxed(workspace: Path) -> None:
    with pytest.raises(ServerUnavailable, match="cannot run servers"):
        await sandboxed_session(None, workspace, "sh", "-c", f"touch {workspace}/started").open(Era.LEGACY, PATIENCE)

    assert list(workspace.iterdir()) == []


async def test_descriptors_are_let_go_of_with_the_server(sandbox: Sandbox, workspace: Path) -> None:
    async def once() -> None:
        session = sandboxed_session(sandbox, workspace)
        await session.open(Era.LEGACY, PATIENCE)
        await session.close()

    await once()
    gc.collect()  # what earlier tests left is not counted
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        await once()

    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"netwrok": "none"}, "sandbox.netwrok is unknown"),
        ({"network": "all"}, "sandbox.network is 'all'"),
        ({"allowed_paths": "/etc"}, "sandbox.allowed_paths must be a list"),
        ({"allowed_paths": [1]}, "sandbox.allowed_paths must be a list"),
        ({"max_memory_mb": 0}, "sandbox.max_memory_mb must be a whole number"),
        ({"max_processes": True}, "sandbox.max_processes must be a whole number"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(table: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_grant(json.loads(json.dumps(table)))
