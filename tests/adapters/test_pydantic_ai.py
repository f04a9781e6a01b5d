from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.world import World
from toolreeve.adapters.pydantic_ai import ReeveToolset
from toolreeve.testing import ScriptedModel, call, say


async def test_an_agent_of_pydantic_ai_calls_tools_on_the_road(world: World) -> None:
    (world.workspace / "a").write_text("content of a")
    script = [call("read_file", path="a") | call("read_file", path="missing"), say("done")]
    with ScriptedModel(script) as model:
        provider = OpenAIProvider(base_url=model.base_url("openai"), api_key="k")
        async with world.reeve() as reeve:
            agent = Agent(OpenAIChatModel("m", provider=provider), toolsets=[ReeveToolset(reeve, ["file"])])
            result = await agent.run("read")
            recorded = await reeve.audit.recent(last_n=10, filters={"tool": "read_file"})

    assert result.output == "done"
    assert model.rejections == []
    assert "content of a" in str(model.requests[1])
    assert "E_FILE_NOT_FOUND" in str(model.requests[1])
    assert len(recorded) == 2
    assert "bash" not in {tool["function"]["name"] for tool in model.requests[0]["tools"]}
