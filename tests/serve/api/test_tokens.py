"""Tokens over REST: made, listed and revoked, never for more than their maker may do."""

import asyncio
import time
from typing import Any

import pytest

from tests.serve.api.api_server import bearer, serving
from tests.serve.mcp.http_server import Sleeper
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.record.audit import Filter
from toolreeve.record.credentials import TOKEN
from toolreeve.serve.tokens import AccessScope, Tokens, new_stored

PATH = "/api/v1/tokens"


async def test_a_token_is_shown_once_and_works_until_it_is_revoked(world: World) -> None:
    async with serving(world.reeve()) as server:
        admin = await server.token(Role.ADMIN)
        made = (await server.client.post(PATH, json={"user": "vera", "scopes": ["read"]}, headers=admin)).json()
        listed = (await server.client.get(PATH, headers=admin)).json()["tokens"]
        before = await server.client.get("/api/v1/session", headers=bearer(made["token"]))
        await server.client.delete(f"{PATH}/{made['id']}", headers=admin)
        after = await server.client.get("/api/v1/session", headers=bearer(made["token"]))

    assert made["token"] not in str(listed)
    assert (before.json()["user"], before.status_code, after.status_code) == ("vera", 200, 401)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"role": "admin"}, "approve"),
        ({"role": "operator"}, "call"),
        ({"scopes": ["approve"]}, "approve"),
        ({"scopes": ["manage", "call"]}, "call"),
        ({"role": "admin", "scopes": ["manage"]}, "role operator"),
        ({"scopes": ["read"], "tools": ["bash"]}, "calculate"),
        ({"scopes": ["read"], "tools": ["calculate", "bash"]}, "calculate"),
    ],
)
async def test_a_token_that_manages_cannot_make_one_that_does_more(
    world: World, asked: dict[str, Any], problem: str
) -> None:
    scopes = (AccessScope.READ, AccessScope.MANAGE)
    async with serving(world.reeve()) as server:
        manager = await server.token(Role.OPERATOR, scopes=scopes, tools=("calculate",))
        refused = await server.client.post(PATH, json={"user": "eve", **asked}, headers=manager)
        stored = (await server.client.get(PATH, headers=manager)).json()["tokens"]

    assert (refused.status_code, refused.json()["code"], len(stored)) == (403, "E_PERMISSION", 1)
    assert problem in refused.json()["detail"]


async def test_the_tools_of_a_token_pass_on_to_those_that_it_makes(world: World) -> None:
    scopes = (AccessScope.READ, AccessScope.MANAGE)
    async with serving(world.reeve()) as server:
        manager = await server.token(Role.OPERATOR, scopes=scopes, tools=("calculate",))
        made = await server.client.post(PATH, json={"user": "ada", "scopes": ["read"]}, headers=manager)
        found = await server.client.get("/api/v1/tools", headers=bearer(made.json()["token"]))

    assert [each["name"] for each in found.json()["tools"]] == ["calculate"]


async def test_a_token_ends_with_the_one_that_made_it(world: World) -> None:
    """Whoever held a stolen token must not go on with those that they made with it."""
    async with serving(world.reeve()) as server:
        admin = await server.token(Role.ADMIN, "ada")
        maker = await server.token(Role.ADMIN, "eve", expires=time.time() + 3600)
        made = (await server.client.post(PATH, json={"user": "eve", "role": "admin"}, headers=maker)).json()
        child = bearer(made["token"])
        second = (await server.client.post(PATH, json={"user": "eve", "days": 3650}, headers=child)).json()
        own_id = list(server.secrets.values())[-1]
        before = [await server.client.get("/api/v1/session", headers=each) for each in (child, bearer(second["token"]))]
        await server.client.delete(f"{PATH}/{own_id}", headers=admin)
        after = [await server.client.get("/api/v1/session", headers=each) for each in (child, bearer(second["token"]))]
        listed = (await server.client.get(PATH, headers=admin)).json()["tokens"]

    assert max(made["expires"], second["expires"]) <= time.time() + 3600
    assert [each.status_code for each in (*before, *after)] == [200, 200, 401, 401]
    assert [each["user"] for each in listed] == ["ada"]


async def test_a_token_made_in_the_console_outlives_the_login(world: World) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        made = (await browser.post(PATH, json={"user": "ada"})).json()

    assert made["expires"] > time.time() + 89 * 86_400


def test_a_token_whose_maker_is_gone_is_not_accepted_and_opens_nothing() -> None:
    """As after a configured token was taken out of the file."""
    child = new_stored("c" * 20, kind=TOKEN, user="eve", role=Role.ADMIN, now=0.0, maker="gone")
    tokens = Tokens()

    tokens.replace_stored([child])

    assert (tokens.find(b"Bearer " + b"c" * 20), bool(tokens)) == (None, True)


async def test_running_calls_of_a_revoked_token_are_cancelled_and_the_next_step_refused(world: World) -> None:
    sleeper, other, nap = Sleeper(), Sleeper(), Sleeper()
    steps = [{"tool": "nap", "args": {}}, {"tool": "calculate", "args": {"expression": "1"}}]
    async with serving(world.reeve(tools=[sleeper.tool(), other.tool("rest"), nap.tool("nap")])) as server:
        admin = await server.token(Role.ADMIN)
        agent = await server.token(Role.OPERATOR)
        number = list(server.secrets.values())[-1]
        started = await server.call("sleep", {}, headers={**agent, "prefer": "respond-async"})
        body = {"steps": steps, "stop_on_error": False}
        chain = asyncio.create_task(server.client.post("/api/v1/chain", json=body, headers=agent))
        await sleeper.runs.wait()
        await nap.runs.wait()
        others = (await server.call("rest", {}, headers={**admin, "prefer": "respond-async"})).json()
        await other.runs.wait()
        await server.client.delete(f"{PATH}/{number}", headers=admin)
        await asyncio.wait({chain})
        await sleeper.ended.wait()
        await nap.ended.wait()
        await server.reeve.internals.store.flush()
        still = server.reeve.internals.calls.find(others["call_id"])
        (record,) = [each for each in await server.reeve.audit.show(started.json()["call_id"]) if each.kind == "call"]
        ran = await server.reeve.audit.list(Filter(tool="calculate"))

    assert (record.body["code"], still is not None) == ("E_CANCELLED", True)
    assert [each.body["code"] for each in ran] in ([], ["E_PERMISSION"])
