"""A server asks the person who called, who takes longer than the tool's timeout."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.upstream.callers import ScriptedCaller
from tests.upstream.server_tables import light
from tests.world import World
from toolreeve import ErrorCode, Toolreeve, ToolResult
from toolreeve.config import Approval
from toolreeve.core.call import ToolCall
from toolreeve.core.mcp import Era

TOOLS_TIME = 0.7
THOUGHT = 1.2
ABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
YES = {"action": "accept", "content": {"colour": "blue"}}


async def slowly(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(THOUGHT)
    return YES


async def never(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def servers(*, modern: bool) -> dict[str, Any]:
    return {"s": light({"modern": True} if modern else {}, danger="safe")}


async def ask(reeve: Toolreeve, person: ScriptedCaller, **args: Any) -> ToolResult:
    return await reeve.run(ToolCall(tool="s__ask", args=args, peer=person, timeout=TOOLS_TIME))


@pytest.mark.parametrize("modern", [False, True], ids=["asked-in-the-middle", "asked-between"])
async def test_a_person_may_think_longer_than_the_tool_may_take(world: World, modern: bool) -> None:
    async with world.reeve(mcp_servers=servers(modern=modern)) as reeve:
        result = await ask(reeve, ScriptedCaller(capabilities=ABILITIES, answer=slowly), times=2)

    assert json.loads(result.output) == [YES, YES]


async def test_a_client_of_the_modern_era_may_think_as_long_as_it_likes(world: World) -> None:
    person = ScriptedCaller(era=Era.MODERN, capabilities=ABILITIES)
    async with world.reeve(mcp_servers=servers(modern=True)) as reeve:
        asked = (await ask(reeve, person)).to_mcp()
        await asyncio.sleep(THOUGHT)
        person.responses, person.state = {"q": YES}, asked["requestState"]
        result = await ask(reeve, person)

    assert asked["resultType"] == "input_required"
    assert json.loads(result.output) == [YES]


@pytest.mark.parametrize("modern", [False, True], ids=["asked-in-the-middle", "asked-between"])
async def test_an_elicitation_times_out_like_an_approval(world: World, modern: bool) -> None:
    settings = world.settings(approval=Approval(timeout=0.1))
    async with world.reeve(settings=settings, mcp_servers=servers(modern=modern)) as reeve:
        result = await ask(reeve, ScriptedCaller(capabilities=ABILITIES, answer=never))

    assert json.loads(result.output) == [{"action": "cancel"}]


@pytest.mark.parametrize("modern", [False, True], ids=["asked-in-the-middle", "asked-between"])
async def test_a_server_cannot_win_time_by_asking_one_who_does_not_answer(world: World, modern: bool) -> None:
    settings = world.settings(approval=Approval(timeout=TOOLS_TIME / 3))
    person = ScriptedCaller(capabilities=ABILITIES, answer=never)
    async with world.reeve(settings=settings, mcp_servers=servers(modern=modern)) as reeve:
        result = await ask(reeve, person, times=10)

    assert result.error is not None
    assert result.error.code is ErrorCode.TIMEOUT
    assert len(person.asked) < 10


@pytest.mark.parametrize("modern", [False, True], ids=["asked-in-the-middle", "asked-between"])
@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list"])
async def test_what_no_person_answers_takes_of_the_tools_time(world: World, modern: bool, method: str) -> None:
    async with world.reeve(mcp_servers=servers(modern=modern)) as reeve:
        result = await ask(reeve, ScriptedCaller(capabilities=ABILITIES, answer=never), method=method)

    assert result.error is not None
    assert result.error.code is ErrorCode.TIMEOUT


async def test_a_server_is_notified_of_the_timeout(world: World) -> None:
    async with world.reeve(mcp_servers=servers(modern=False)) as reeve:
        slow = await reeve.run(
            ToolCall(tool="s__sleep", args={"seconds": TOOLS_TIME * 2}, peer=ScriptedCaller(), timeout=TOOLS_TIME)
        )
        heard = json.loads((await reeve.call("s__heard")).output)

    assert slow.error is not None
    assert slow.error.code is ErrorCode.TIMEOUT
    assert "notifications/cancelled" in [each[0] for each in heard]
