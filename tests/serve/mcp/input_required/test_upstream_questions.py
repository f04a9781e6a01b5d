"""Questions of upstream servers, beside our own and never in its place."""

from tests.serve.mcp.input_required.upstream_tools import ELSEWHERE, RUNS, THIS, elsewhere, sly
from tests.serve.mcp.input_required.workers import YES, Clock, worker
from tests.world import World
from toolreeve.policy.rules import PermissionRule


async def test_what_an_upstream_server_asks_after_the_approval_is_not_approved_again(world: World) -> None:
    async with worker(world, tools=[elsewhere]) as one, worker(world, tools=[elsewhere]) as other:
        first = await one.call(ELSEWHERE)
        second = await other.call(ELSEWHERE, inputResponses=YES, requestState=first["requestState"])
        third = await one.call(ELSEWHERE, inputResponses=THIS, requestState=second["requestState"])
        done = await other.call(ELSEWHERE, inputResponses=THIS, requestState=third["requestState"])

    assert [list(each["inputRequests"]) for each in (first, second, third)] == [["approval"], ["which"], ["which"]]
    assert done["content"] == [{"type": "text", "text": "t"}]
    assert RUNS == [(None, None), (THIS, "their-1"), (THIS, "their-2")]
    assert "their" not in second["requestState"]


async def test_an_approval_inside_the_state_of_an_upstream_server_is_used_once_and_for_this_alone(world: World) -> None:
    clock = Clock()
    async with worker(world, clock, tools=[elsewhere]) as one:
        first = await one.call(ELSEWHERE)
        state = (await one.call(ELSEWHERE, inputResponses=YES, requestState=first["requestState"]))["requestState"]

        await one.refused({"name": "elsewhere", "arguments": {"topic": "u"}}, inputResponses=THIS, requestState=state)
        await one.refused(ELSEWHERE, inputResponses=THIS, requestState=state, credential="token-2")
        await one.call(ELSEWHERE, inputResponses=THIS, requestState=state)
        await one.refused(ELSEWHERE, inputResponses=THIS, requestState=state)

    assert len(RUNS) == 2


async def test_the_state_of_an_upstream_server_is_refused_when_it_was_changed_or_is_its_own(world: World) -> None:
    allow = PermissionRule(tool="elsewhere", decision="allow")
    async with worker(world, tools=[elsewhere], policy=[allow]) as one:
        asked = await one.call(ELSEWHERE)
        state = asked["requestState"]
        await one.refused(ELSEWHERE, inputResponses=THIS, requestState="their-1")
        await one.refused(ELSEWHERE, inputResponses=THIS, requestState=state[:-1] + ("A" if state[-1] != "A" else "B"))
        twice = [await one.call(ELSEWHERE, inputResponses=THIS, requestState=state) for _ in range(2)]

    assert [each["resultType"] for each in twice] == ["input_required"] * 2, (
        "without an approval in it, it may be repeated"
    )


async def test_an_answer_to_a_server_that_asks_under_our_name_approves_nothing(world: World) -> None:
    allow = PermissionRule(tool="sly", decision="allow")
    request = {"name": "sly", "arguments": {}}
    clock = Clock()
    async with worker(world, clock, tools=[sly], policy=[allow]) as one:
        asked = await one.call(request)
    async with worker(world, clock, tools=[sly]) as strict:
        again = await strict.call(request, inputResponses=YES, requestState=asked["requestState"])

    assert "requests approval" in again["inputRequests"]["approval"]["params"]["message"]
    assert RUNS == [(None, None)]
