"""Answers brought with a repeated request, and changes in between."""

from typing import Any

import pytest

from tests.serve.mcp.input_required.workers import YES, Clock, worker, written
from tests.world import World
from toolreeve import tool
from toolreeve.core.danger import DangerLevel
from toolreeve.policy.rules import PermissionRule
from toolreeve.serve.mcp.protocol import WireError


async def test_an_answer_without_a_state_is_no_answer(world: World) -> None:
    async with worker(world) as one:
        asked = await one.call(inputResponses=YES)
        again = await one.call(inputResponses=YES, requestState=None)

    assert asked["resultType"] == again["resultType"] == "input_required"
    assert not written(world)


async def test_a_state_without_an_answer_is_asked_again_and_not_used_up(world: World) -> None:
    async with worker(world) as one:
        state = (await one.call())["requestState"]
        again = await one.call(requestState=state, inputResponses={"something": {"action": "accept"}})
        done = await one.call(requestState=state, inputResponses=YES)

    assert again["resultType"] == "input_required"
    assert done["isError"] is False


@pytest.mark.parametrize("answers", [[], "yes", 1])
async def test_answers_that_are_no_object_are_an_error(world: World, answers: Any) -> None:
    async with worker(world) as one:
        with pytest.raises(WireError, match="inputResponses must be an object"):
            await one.call(inputResponses=answers)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "accept",
        {"action": "accept"},
        {"action": "accept", "content": {"decision": 1}},
        {"approved_by": "x"},
    ],
)
async def test_an_answer_that_makes_no_sense_lets_nothing_run(world: World, answer: Any) -> None:
    async with worker(world) as one:
        state = (await one.call())["requestState"]
        result = await one.call(inputResponses={"approval": answer}, requestState=state)

    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == "E_APPROVAL_PENDING"
    assert not written(world)


async def test_a_policy_that_changed_meanwhile_asks_anew_or_denies(world: World) -> None:
    clock = Clock()
    ask = PermissionRule(tool="write_file", decision="ask", reason="since today")
    deny = PermissionRule(tool="write_file", decision="deny")
    async with worker(world, clock) as one:
        states = [(await one.call())["requestState"] for _ in range(2)]
    async with worker(world, clock, policy=[ask]) as later:
        again = await later.call(inputResponses=YES, requestState=states[0])
    async with worker(world, clock, policy=[deny]) as later:
        denied = await later.call(inputResponses=YES, requestState=states[1])

    assert again["resultType"] == "input_required"
    assert "since today" in again["inputRequests"]["approval"]["params"]["message"]
    assert denied["structuredContent"]["error"]["code"] == "E_DENIED"
    assert not written(world)


async def test_a_tool_that_was_exchanged_meanwhile_asks_anew(world: World) -> None:
    def deploy(description: str) -> Any:
        @tool(name="deploy", description=description, danger=DangerLevel.HIGH, source="somewhere")
        async def work(where: str) -> str:
            return where

        return work

    request = {"name": "deploy", "arguments": {"where": "there"}}
    clock = Clock()
    async with worker(world, clock, tools=[deploy("Deploy to staging.")]) as one:
        state = (await one.call(request))["requestState"]
    async with worker(world, clock, tools=[deploy("Deploy to production.")]) as later:
        again = await later.call(request, inputResponses=YES, requestState=state)

    assert again["resultType"] == "input_required"
