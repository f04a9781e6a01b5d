"""Nothing of a server is left when the runtime is closed, at whatever moment."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.upstream.server_tables import descendants, light
from tests.world import World


async def test_nothing_of_a_server_is_left_when_the_runtime_is_closed(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light(danger="safe"), "t": light(danger="safe")}) as reeve:
        pids = [int((await reeve.call(f"{name}__pid")).output) for name in "st"]

    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


@pytest.mark.parametrize("moments", [0, 1, 2, 5, 20, 200])
async def test_a_runtime_that_is_closed_while_servers_connect_leaves_none(world: World, moments: int) -> None:
    silent = {"command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]}
    before = descendants()

    async with asyncio.timeout(20), world.reeve(mcp_servers={"s": silent, "t": light()}, await_servers=False) as reeve:
        for _ in range(moments):
            await asyncio.sleep(0)

    assert not reeve.fleet.connecting
    assert descendants() - before == set()


@pytest.mark.parametrize("moments", [1, 2, 5, 20, 200])
async def test_a_runtime_that_is_closed_while_servers_are_restarted_leaves_none(world: World, moments: int) -> None:
    before = descendants()

    async with asyncio.timeout(20), world.reeve(mcp_servers={"s": light(danger="safe")}) as reeve:
        os.kill(int((await reeve.call("s__pid")).output), 9)
        calling = asyncio.create_task(reeve.call("s__pid"))
        for _ in range(moments):
            await asyncio.sleep(0)
        await reeve.close()
        await calling

    assert descendants() - before == set()
