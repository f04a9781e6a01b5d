import openai
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner

from tests.world import World
from toolreeve.adapters.openai_agents import function_tools
from toolreeve.testing import ScriptedModel, call, say


async def test_an_agent_of_the_sdk_calls_tools_on_the_road(world: World) -> None:
    (world.workspace / "a").write_text("content of a")
    script = [call("read_file", path="a") | call("read_file", raw='{"path":'), say("done")]
    with ScriptedModel(script) as model:
        client = openai.AsyncOpenAI(base_url=model.base_url("openai"), api_key="k")
        async with world.reeve() as reeve:
            agent = Agent(
                name="reader",
                model=OpenAIChatCompletionsModel("m", client),
                tools=[*function_tools(reeve, ["file"])],
            )
            result = await Runner.run(agent, "read", run_config=RunConfig(tracing_disabled=True))
            recorded = await reeve.audit.recent(last_n=10, filters={"tool": "read_file"})

    assert result.final_output == "done"
    assert "content of a" in str(model.requests[1])
    assert len(recorded) == 2
