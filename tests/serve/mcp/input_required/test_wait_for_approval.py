"""`wait_for_approval`: who may wait, and what runs then."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.approval.clients import Client as ScriptedClient
from tests.serve.mcp.input_required.upstream_tools import ELSEWHERE, RUNS, THIS, elsewhere
from tests.serve.mcp.input_required.workers import Worker, worker, written
from tests.world import World
from toolreeve import tool
from toolreeve.approval.pending import write_answer
from toolreeve.approval.request import Answer
from toolreeve.core.call import Principal, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.tool import bind
from toolreeve.policy.rules import PermissionRule

PENDING: Mapping[str, Any] = {"capabilities": {}}


async def filed(one: Worker) -> str:
    pending = await one.call(**PENDING)
    assert pending["structuredContent"]["error"]["code"] == "E_APPROVAL_PENDING"
    return str(pending["structuredContent"]["approval_id"])


def waits(number: str, timeout: float = 0) -> Mapping[str, Any]:
    return {"name": "wait_for_approval", "arguments": {"approval_id": number, "timeout": timeout}}


async def test_only_the_principal_that_asked_may_wait(world: World) -> None:
    async with worker(world) as one:
        number = await filed(one)
        await one.reeve.approvals.store.decide(number, write_answer(Answer(granted=True, by="Bea")))
        stolen = await one.call(waits(number), principal=Principal(user="eve"), **PENDING)
        borrowed = await one.call(waits(number), credential="token-2", **PENDING)
        shortened = await one.call(waits(number[:5]), **PENDING)
        done = await one.call(waits(number), **PENDING)

    assert [each["isError"] for each in (stolen, borrowed, shortened, done)] == [True, True, True, False]


async def test_a_client_that_does_not_see_the_tool_cannot_use_up_its_approval(world: World) -> None:
    async with worker(world) as one:
        number = await filed(one)
        await one.reeve.approvals.store.decide(number, write_answer(Answer(granted=True, by="Bea")))
        blind = await one.call(waits(number), tools="read_file", **PENDING)
        done = await one.call(waits(number), **PENDING)

    assert [each["isError"] for each in (blind, done)] == [True, False]
    assert "write_file" not in json.dumps(blind)


async def test_of_all_who_wait_for_one_approval_one_runs_the_call(world: World) -> None:
    count: list[str] = []

    @tool(name="count", danger=DangerLevel.HIGH)
    async def work(what: str) -> str:
        count.append(what)
        return what

    request = {"name": "count", "arguments": {"what": "once"}}
    async with worker(world, tools=[work]) as one, worker(world, tools=[work]) as other:
        number = (await one.call(request, **PENDING))["structuredContent"]["approval_id"]
        waiting = [asyncio.create_task(each.call(waits(number, 30), **PENDING)) for each in (one, other, one, other)]
        await one.reeve.approvals.store.decide(number, write_answer(Answer(granted=True, by="Bea")))
        async with asyncio.timeout(20):
            results = await asyncio.gather(*waiting)

    assert count == ["once"]
    assert [result["isError"] for result in results].count(False) == 1


async def test_a_policy_that_denies_by_the_time_of_the_answer_is_not_outweighed(world: World) -> None:
    async with worker(world) as one:
        number = await filed(one)
        await one.reeve.approvals.store.decide(number, write_answer(Answer(granted=True, by="Bea")))
    async with worker(world, policy=[PermissionRule(tool="write_file", decision="deny")]) as later:
        denied = await later.call(waits(number), **PENDING)

    assert denied["structuredContent"]["error"]["code"] == "E_DENIED"
    assert not written(world)


async def test_a_policy_that_asks_otherwise_by_then_has_the_question_kept_anew(world: World) -> None:
    async with worker(world) as one:
        number = await filed(one)
        await one.reeve.approvals.store.decide(number, write_answer(Answer(granted=True, by="Bea")))
    async with worker(world, policy=[PermissionRule(tool="write_file", decision="ask", reason="new")]) as later:
        again = await later.call(waits(number), **PENDING)

    assert again["structuredContent"]["status"] == "pending"
    assert again["structuredContent"]["approval_id"] != number
    assert not written(world)


async def test_an_approved_call_that_pauses_for_its_server_goes_on_when_it_is_waited_for_again(world: World) -> None:
    async with worker(world, tools=[elsewhere]) as one:
        number = (await one.call(ELSEWHERE, **PENDING))["structuredContent"]["approval_id"]
        await one.reeve.approvals.store.decide(number, write_answer(Answer(granted=True, by="Bea")))
        second = await one.call(waits(number), **PENDING)
        third = await one.call(waits(number), inputResponses=THIS, requestState=second["requestState"], **PENDING)
        await one.refused(waits(number), inputResponses=THIS, requestState=second["requestState"], **PENDING)
        done = await one.call(waits(number), inputResponses=THIS, requestState=third["requestState"], **PENDING)

    assert done["isError"] is False
    assert RUNS == [(None, None), (THIS, "their-1"), (THIS, "their-2")]


async def test_a_request_that_is_no_call_of_a_tool_is_made_again_by_the_client_itself(world: World) -> None:
    @tool(name="far__prompts/get", danger=DangerLevel.HIGH)
    async def work() -> str:
        return "hello"

    shown = bind(work)
    hidden = replace(shown, spec=replace(shown.spec, hidden=True))
    async with worker(world, tools=[hidden]) as one:
        made = ToolCall(tool="far__prompts/get", args={}, session="s", peer=ScriptedClient(capabilities={}))
        pending = (await one.reeve.run(made)).data or {}
        number = pending["approval_id"]
        await one.reeve.approvals.store.decide(number, write_answer(Answer(granted=True, by="Bea")))
        waited = await one.call(waits(number), credential="", **PENDING)
        again = await one.reeve.run(replace(made, id="again"))

    assert waited["structuredContent"]["status"] == "allowed"
    assert again.success
