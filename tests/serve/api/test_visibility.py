"""What each credential may read of calls and questions, over every endpoint that reads them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve import ExecutionContext, PermissionPolicy, PermissionRule
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.verdict import Decision
from toolreeve.serve.tokens import AccessScope

SECRET = "what-ada-wrote"
OTHER_TOOL = "calculate"
CALL = "/api/v1/calls/{id}"
QUESTION = "/api/v1/approvals/{question}"
READERS = (
    "/api/v1/calls",
    CALL,
    "/api/v1/calls?q=what-ada-wrote",
    "/api/v1/audit",
    "/api/v1/audit/export",
    "/api/v1/audit/export?format=csv",
    "/api/v1/sessions",
    "/api/v1/metrics/summary?by=tool",
    "/api/v1/metrics/series",
    "/api/v1/calls/histogram",
    "/api/v1/approvals",
    "/api/v1/approvals?state=all",
    QUESTION,
    "/api/v1/policy/grants",
    "/api/v1/policy/suggestions?often=2",
    "/api/v1/status",
)
TOLD = {
    "same token": "whole",
    "same user": "rows",
    "viewer": "nothing",
    "operator": "nothing",
    "approver": "whole",
    "admin": "whole",
}


@asynccontextmanager
async def with_a_call_and_a_question_of_ada(world: World) -> AsyncIterator[tuple[ApiServer, dict[str, str], str, str]]:
    async with serving(world.reeve()) as server:
        ada = await server.token(Role.OPERATOR, "ada")
        made = (await server.call(OTHER_TOOL, {"expression": f"'{SECRET}'"}, headers=ada)).json()["meta"]["call_id"]
        args = {"path": f"{SECRET}.txt", "content": SECRET}
        await server.client.post(
            "/api/v1/tools/write_file/call", json={"args": args}, headers={**ada, "prefer": "respond-async"}
        )
        yield server, ada, made, await question_of(server)


async def question_of(server: ApiServer) -> str:
    for _ in range(400):
        if found := (await server.reeve.approvals.list()).items:
            return str(found[0]["id"])
        await asyncio.sleep(0.02)
    raise TimeoutError


async def reader(server: ApiServer, kind: str, ada: dict[str, str]) -> dict[str, str]:
    match kind:
        case "same token":
            return ada
        case "same user":
            return await server.token(Role.OPERATOR, "ada")
        case "approver":
            return await server.token(Role.OPERATOR, "paul", scopes=[AccessScope.READ, AccessScope.APPROVE])
        case _:
            return await server.token(Role(kind), "eve")


def told(answer: httpx2.Response) -> str:
    if SECRET in answer.text.replace('"q":', ""):
        return "arguments"
    return "call" if any(word in answer.text for word in (OTHER_TOOL, "write_file", "ada")) else "nothing"


@pytest.mark.parametrize("kind", TOLD)
async def test_others_learn_neither_of_calls_and_questions_nor_of_their_arguments(world: World, kind: str) -> None:
    async with with_a_call_and_a_question_of_ada(world) as (server, ada, made, question):
        headers = await reader(server, kind, ada)
        answers = {
            path: await server.client.get(path.format(id=made, question=question), headers=headers) for path in READERS
        }

    found = {path: told(answer) for path, answer in answers.items()}
    status = answers["/api/v1/status"].json()
    match TOLD[kind]:
        case "nothing":
            assert set(found.values()) == {"nothing"}, found
            assert [answers[each].status_code for each in (CALL, QUESTION)] == [404, 404]
            assert (status["head"], status["pending"]) == (None, 0)
        case "rows":
            assert "arguments" not in found.values(), found
            assert {found["/api/v1/calls"], found["/api/v1/audit"], found["/api/v1/approvals"]} == {"call"}
            assert (status["head"], status["pending"]) == (None, 1)
        case _:
            assert {found[CALL], found["/api/v1/calls"], found["/api/v1/audit"], found[QUESTION]} == {"arguments"}


@pytest.mark.parametrize(("kind", "expected"), [("viewer", []), ("same user", [""]), ("admin", [SECRET])])
async def test_events_follow_the_same_rule(world: World, kind: str, expected: list[str]) -> None:
    async with with_a_call_and_a_question_of_ada(world) as (server, ada, _, _):
        headers = await reader(server, kind, ada)
        found: list[str] = []
        async with server.client.stream("GET", "/api/v1/events?after=0&kinds=call.finished", headers=headers) as stream:
            await server.reeve.run(ToolCall(tool="get_datetime", args={}, principal=_principal(kind)))
            async for line in stream.aiter_lines():
                if "get_datetime" in line:
                    break
                if OTHER_TOOL in line:
                    found.append(SECRET if SECRET in line else "")

    assert found == expected


def _principal(kind: str) -> Principal:
    return Principal(user="ada" if kind == "same user" else "eve", role=Role.OPERATOR)


async def test_asking_about_others_is_refused(world: World) -> None:
    async with with_a_call_and_a_question_of_ada(world) as (server, _, _, _):
        eve = await server.token(Role.OPERATOR, "eve")
        answer = await server.client.get("/api/v1/audit?user=ada", headers=eve)

    assert (answer.status_code, "approve or manage" in answer.json()["detail"]) == (403, True)


async def test_rules_of_another_user_are_for_those_who_see_all(world: World) -> None:
    rule = PermissionRule(tool="write_file", decision=Decision.ALLOW, user="ada", reason=f"keeps {SECRET}")
    policy = PermissionPolicy(ExecutionContext(rules=[rule]))
    async with serving(world.reeve(policy=policy)) as server:
        readers = {role.value: await server.token(role, "bea") for role in Role}
        readers["ada"] = await server.token(Role.VIEWER, "ada")
        shown = {
            kind: SECRET in (await server.client.get("/api/v1/policy/rules", headers=token)).text
            for kind, token in readers.items()
        }

    assert shown == {"viewer": False, "operator": False, "admin": True, "ada": True}
