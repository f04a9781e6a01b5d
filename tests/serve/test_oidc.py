"""OpenID login against a real provider: groups give the role, and nothing else gets in."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import oidc_provider_mock
import pytest

from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.oidc import LoginRefused, OidcSettings, find_principal

ROLES = {"platform": Role.ADMIN, "agents": Role.OPERATOR, "audit": Role.VIEWER}
USERS = {
    "ada": ["audit", "platform"],
    "ben": ["agents"],
    "vera": ["audit"],
    "eve": ["strangers"],
}


@asynccontextmanager
async def providing(world: World) -> AsyncIterator[tuple[ApiServer, httpx2.AsyncClient]]:
    claims = [
        oidc_provider_mock.User(sub=name, claims={"email": f"{name}@a.example", "groups": groups})
        for name, groups in USERS.items()
    ]
    with oidc_provider_mock.run_server_in_thread(user_claims=claims) as provider:
        issuer = f"http://localhost:{provider.server_port}"
        settings = OidcSettings(issuer=issuer, client_id="console", client_secret="a-secret", roles=ROLES)
        async with (
            serving(world.reeve(), oidc=settings) as server,
            httpx2.AsyncClient(base_url=server.url, timeout=20) as browser,
        ):
            yield server, browser


async def log_in(browser: httpx2.AsyncClient, user: str) -> httpx2.Response:
    """As a person: start, choose the user at the provider, come back."""
    start = await browser.get("/login/oidc")
    back = await browser.post(start.headers["location"], data={"sub": user})
    assert back.status_code in (302, 303), back.text[:500]
    return await browser.get(back.headers["location"])


@pytest.mark.parametrize(
    ("user", "scopes"),
    [
        ("ada", ["approve", "call", "manage", "metrics", "read"]),
        ("ben", ["approve", "call", "read"]),
        ("vera", ["read"]),
    ],
)
async def test_a_group_gives_its_role_and_the_session_is_the_users(world: World, user: str, scopes: list[str]) -> None:
    async with providing(world) as (_, browser):
        done = await log_in(browser, user)
        session = (await browser.get("/api/v1/session")).json()

    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert (session["user"], session["scopes"]) == (f"{user}@a.example", scopes)


async def test_a_person_without_a_group_that_has_a_role_is_refused(world: World) -> None:
    async with providing(world) as (_, browser):
        refused = await log_in(browser, "eve")

    assert (refused.status_code, "serve.oidc.roles" in refused.text) == (403, True)
    assert "toolreeve_console" not in refused.headers.get("set-cookie", "")


async def test_an_answer_for_another_browser_or_login_is_refused(world: World) -> None:
    async with providing(world) as (server, browser):
        start = await browser.get("/login/oidc")
        back = await browser.post(start.headers["location"], data={"sub": "ada"})
        answer = back.headers["location"]
        stolen = await server.client.get(answer)
        forged = await browser.get(re.sub(r"state=[^&]+", "state=forged", answer))
        again = await browser.get(answer)

    assert [each.status_code for each in (stolen, forged, again)] == [403, 403, 403]


def test_the_highest_role_of_all_groups_counts_and_sub_stands_in_for_a_missing_claim() -> None:
    settings = OidcSettings(issuer="https://a.example", client_id="c", client_secret="s", roles=ROLES)

    found = find_principal({"sub": "7", "groups": ["audit", "agents"]}, settings)

    assert (found.user, found.role) == ("7", Role.OPERATOR)
    with pytest.raises(LoginRefused):
        find_principal({"sub": "7", "groups": "platform"}, settings)
