"""Loops with the providers' own clients, over real HTTP."""

from typing import Any

import anthropic
import openai
import pytest

from tests.world import World
from toolreeve import Toolreeve
from toolreeve.core.errors import ToolreeveError
from toolreeve.testing import ScriptedModel, call, say

SCRIPT = [call("read_file", path="a") | call("read_file", path="missing"), say("done")]


async def test_a_loop_with_openai(world: World) -> None:
    (world.workspace / "a").write_text("content of a")
    with ScriptedModel(SCRIPT) as model:
        client = openai.AsyncOpenAI(base_url=model.base_url("openai"), api_key="k")
        messages: list[Any] = [{"role": "user", "content": "read"}]
        async with world.reeve() as reeve:
            tools = reeve.tools_for("openai", only=["read_file"])
            first = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            messages += [first.choices[0].message, *await reeve.run_tool_calls(first)]
            last = await client.chat.completions.create(model="m", messages=messages, tools=tools)
            assert await reeve.run_tool_calls(last) == []

    assert last.choices[0].message.content == "done"
    assert model.rejections == []
    assert "content of a" in str(model.requests[1])
    assert "E_FILE_NOT_FOUND" in str(model.requests[1])
    assert [tool["function"]["name"] for tool in model.requests[0]["tools"]] == ["read_file"]


async def test_a_loop_with_openai_responses(world: World) -> None:
    (world.workspace / "a").write_text("content of a")
    with ScriptedModel(SCRIPT) as model:
        client = openai.AsyncOpenAI(base_url=model.base_url("openai"), api_key="k")
        items: list[Any] = [{"role": "user", "content": "read"}]
        async with world.reeve() as reeve:
            first = await client.responses.create(model="m", input=items)
            items += [*first.output, *await reeve.run_tool_calls(first)]
            last = await client.responses.create(model="m", input=items)

    assert last.output_text == "done"
    assert model.rejections == []


async def test_a_loop_with_anthropic(world: World) -> None:
    (world.workspace / "a").write_text("content of a")
    with ScriptedModel(SCRIPT) as model:
        client = anthropic.AsyncAnthropic(base_url=model.base_url("anthropic"), api_key="k")
        messages: list[Any] = [{"role": "user", "content": "read"}]
        async with world.reeve() as reeve:
            tools = reeve.tools_for("anthropic")
            first = await client.messages.create(model="m", max_tokens=99, messages=messages, tools=tools)
            messages += [
                {"role": "assistant", "content": first.content},
                *await reeve.run_tool_calls(first),
            ]
            last = await client.messages.create(model="m", max_tokens=99, messages=messages, tools=tools)

    assert last.content[0].type == "text"
    assert model.rejections == []
    assert "content of a" in str(model.requests[1])


async def test_arguments_that_are_not_json_are_answered_with_what_is_wrong(world: World) -> None:
    response = {"tool_calls": [{"id": "1", "function": {"name": "calculate", "arguments": '{"expression":'}}]}

    async with world.reeve() as reeve:
        (answer,) = await reeve.run_tool_calls("openai", response)

    assert "E_INVALID_PARAMS" in answer["content"]


async def test_a_part_of_a_response_does_not_show_whose_it_is(world: World) -> None:
    async with world.reeve() as reeve:
        with pytest.raises(ToolreeveError, match="Name the provider"):
            await reeve.run_tool_calls({"tool_calls": []})


def test_the_synchronous_runtime_runs_calls_too(world: World) -> None:
    response = {"tool_calls": [{"id": "1", "function": {"name": "calculate", "arguments": '{"expression": "6*7"}'}}]}

    with Toolreeve.sync(settings=world.settings()) as reeve:
        answers = reeve.run_tool_calls("openai", response)

    assert answers == [{"role": "tool", "tool_call_id": "1", "content": "42"}]
