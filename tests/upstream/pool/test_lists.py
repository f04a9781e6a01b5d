"""Lists of tools that are long, endless, or change all the time."""

import asyncio
import json
from pathlib import Path

from tests.upstream.pool.status import of
from tests.upstream.server_tables import from_file, light, tool
from tests.world import World


async def test_a_list_in_pages_is_read_to_its_end(world: World) -> None:
    offer = {"tools": [tool(f"t{number}") for number in range(25)], "page": 10}

    async with world.reeve(mcp_servers={"s": light(offer)}) as reeve:
        assert of(reeve, "s").tools == 25


async def test_a_list_that_repeats_a_cursor_is_given_up(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light({"circle": True}), "ok": light()}) as reeve:
        assert (of(reeve, "s").state, of(reeve, "ok").state) == ("failed", "up")
        assert "repeats a cursor" in of(reeve, "s").problem


async def test_more_tools_than_anyone_needs_are_refused(world: World, tmp_path: Path) -> None:
    many = {"tools": [{"name": f"t{number}", "inputSchema": {}} for number in range(10_001)]}

    async with world.reeve(mcp_servers={"s": from_file(tmp_path / "many.json", many)}) as reeve:
        assert "more than 10000" in of(reeve, "s").problem


async def test_a_changed_list_changes_the_registry_by_its_differences(world: World, tmp_path: Path) -> None:
    path = tmp_path / "offer.json"
    server = from_file(path, {"tools": [tool("relist"), tool("old"), tool("kept")]}, danger="safe")

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        kept = reeve.tools.get("s__kept")
        path.write_text(json.dumps({"tools": [tool("relist"), tool("kept"), tool("new")]}))
        changed = asyncio.Event()
        reeve.tools.watch(lambda: changed.set() if "s__new" in reeve.tools else None)

        await reeve.call("s__relist")
        await asyncio.wait_for(changed.wait(), 10)

        assert "s__old" not in reeve.tools
        assert reeve.tools.get("s__kept") is kept


async def test_a_server_whose_list_always_changes_blocks_no_call(world: World) -> None:
    noisy = light(
        {"noisy": True, "tools": [tool("echo"), *(tool(f"t{number}") for number in range(200))]}, danger="safe"
    )

    async with world.reeve(mcp_servers={"noisy": noisy, "calm": light(danger="safe")}) as reeve:
        async with asyncio.timeout(20):
            for number in range(50):
                assert (await reeve.call("noisy__echo", n=number)).data == {"n": number}
                assert (await reeve.call("calm__echo", n=number)).data == {"n": number}
