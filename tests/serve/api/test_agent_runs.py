"""Runs of our own agent over REST: the conversation, with the calls on record and where their results came from."""

from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.agent.config import BaseAgentConfig
from toolreeve.agent.providers import connect
from toolreeve.agent.recorded_run import run_recorded
from toolreeve.core.call import Role
from toolreeve.testing import ScriptedModel, call, say


async def test_a_run_is_a_timeline_with_its_calls_and_labels(world: World) -> None:
    (world.workspace / "notes.txt").write_text("42")
    turns = [call("read_file", path="notes.txt"), say("It is 42.")]
    async with serving(world.reeve()) as server:
        with ScriptedModel(turns) as model:
            url = model.base_url("ollama")
            config = BaseAgentConfig(llm_provider="ollama", model="scripted", base_url=url)
            provider = connect("ollama", base_url=url, timeout=20, environ={})
            result = await run_recorded(server.reeve, config, {"task": "What is it?"}, provider=provider)
        admin = await server.token(Role.ADMIN)
        operator = await server.token(Role.OPERATOR)
        listed = (await server.client.get("/api/v1/runs", headers=admin)).json()["runs"]
        shown = (await server.client.get(f"/api/v1/runs/{result.run_id}", headers=admin)).json()
        (answer,) = shown["messages"][2]["answers"]
        made = (await server.client.get(f"/api/v1/calls/{answer['call_id']}", headers=admin)).json()
        missing = await server.client.get(f"/api/v1/runs/{result.run_id[:8]}", headers=admin)
        refused = await server.client.get(f"/api/v1/runs/{result.run_id}", headers=operator)

    assert [(each["id"], each["stop"], each["steps"]) for each in listed] == [(result.run_id, "completed", 2)]
    assert [each["role"] for each in shown["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert (answer["text"], answer["labels"], made["tool"]) == ("42", ["untrusted"], "read_file")
    assert shown["messages"][0]["at"] <= shown["messages"][3]["at"]
    assert (missing.status_code, refused.status_code) == (404, 403)
