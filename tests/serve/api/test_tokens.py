"""Tokens over REST: made, listed and revoked, never for more than their maker may do."""

from typing import Any

import pytest

from tests.serve.api.api_server import bearer, serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.tokens import AccessScope

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
