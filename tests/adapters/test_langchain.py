from tests.world import World
from toolreeve.adapters.langchain import langchain_tools


async def test_tools_of_langchain_take_the_road(world: World) -> None:
    (world.workspace / "a").write_text("content of a")
    async with world.reeve() as reeve:
        (tool,) = langchain_tools(reeve, ["read_file"])
        read = await tool.ainvoke({"path": "a"})
        refused = await tool.ainvoke({"path": "/etc/shadow"})
        answered = await tool.ainvoke({"name": "read_file", "args": {"path": "a"}, "id": "1", "type": "tool_call"})
        recorded = await reeve.audit.recent(last_n=10, filters={"tool": "read_file"})

    assert read == "content of a"
    assert "E_PATH_FORBIDDEN" in refused
    assert (answered.content, answered.tool_call_id) == ("content of a", "1")
    assert len(recorded) == 3
    assert "path" in tool.args
