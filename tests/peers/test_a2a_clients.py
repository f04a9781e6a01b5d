"""Clients of A2A that others wrote, against our door: the 0.3 SDK for Python, and the one for JavaScript."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.peers.programs import NODE, PEERS
from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.tokens import AccessScope

HERE = Path(__file__).parent
APPROVES = (AccessScope.READ, AccessScope.CALL, AccessScope.APPROVE)


@asynccontextmanager
async def approver(world: World) -> AsyncIterator[tuple[ApiServer, str]]:
    """A server, and a token that may call and approve."""
    async with serving(world.reeve()) as server:
        headers = await server.token(Role.OPERATOR, "ada", scopes=APPROVES)
        yield server, headers["authorization"].removeprefix("Bearer ")


async def run(*words: str | Path) -> dict[str, Any]:
    child = await asyncio.create_subprocess_exec(
        *map(str, words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, complaints = await asyncio.wait_for(child.communicate(), 60)
    assert child.returncode == 0, complaints.decode()
    told: dict[str, Any] = json.loads(out)
    return told


async def test_a_client_of_version_0_3_calls_streams_approves_and_cancels(world: World) -> None:
    async with approver(world) as (server, token):
        told = await run(PEERS / "py" / "bin" / "python", HERE / "a2a_old_client.py", server.url, token)

    assert told["version"] == "0.3"
    assert "calculate" in told["skills"]
    assert told["events"] == ["task", "artifact-update", "status-update"]
    assert told["result"] == "42"
    assert (told["states"], told["found"]) == (["input-required", "completed"], "completed")
    assert told["canceled"] == "canceled"
    assert (world.workspace / "a.txt").read_text() == "written"
    assert not (world.workspace / "b.txt").exists()


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_client_in_javascript_calls_streams_approves_and_cancels(world: World, binding: str) -> None:
    async with approver(world) as (server, token):
        told = await run(NODE, HERE / "a2a_client.mjs", PEERS.resolve(), server.url, token, binding)

    completed, waits, canceled = 3, 6, 5
    assert "calculate" in told["skills"]
    assert (told["events"], told["result"]) == (["task", "artifactUpdate", "statusUpdate"], "42")
    assert told["states"] == [waits, completed, completed, canceled]
    assert (world.workspace / "a.txt").read_text() == "written"
