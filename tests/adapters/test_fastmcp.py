from fastmcp import Client, FastMCP

from tests.world import World
from toolreeve.adapters.fastmcp import fastmcp_server


async def test_a_mounted_server_calls_tools_on_the_road(world: World) -> None:
    (world.workspace / "a").write_text("content of a")
    async with world.reeve() as reeve:
        server: FastMCP[None] = FastMCP("main")
        server.mount(fastmcp_server(reeve, ["file"]), namespace="files")
        async with Client(server) as client:
            names = {tool.name for tool in await client.list_tools()}
            found = await client.call_tool("files_read_file", {"path": "a"})
            missing = await client.call_tool("files_read_file", {"path": "b"}, raise_on_error=False)
            recorded = await reeve.audit.recent(last_n=10, filters={"tool": "read_file"})

    assert "files_write_file" in names
    assert "files_bash" not in names
    assert (found.content[0].text, found.structured_content["content"]) == ("content of a", "content of a")
    assert missing.is_error
    assert "E_FILE_NOT_FOUND" in missing.content[0].text
    assert len(recorded) == 2
