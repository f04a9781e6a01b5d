"""Login by a one-time link: once, with a strict cookie, and changes only from our own page."""

import time

import pytest

from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.login import new_link

CALL = "/api/v1/tools/calculate/call"
SUM = {"args": {"expression": "1 + 1"}}


async def link_of(server: ApiServer) -> str:
    return await new_link(server.reeve.internals.store.credentials, time.time(), server.url)


async def test_a_link_opens_the_console_once_with_a_strict_cookie(world: World) -> None:
    async with serving(world.reeve()) as server:
        link = await link_of(server)
        first = await server.client.get(link)
        second = await server.client.get(link)

    cookie = first.headers["set-cookie"].lower()
    assert (first.status_code, first.headers["location"], second.status_code) == (303, "/", 403)
    assert all(each in cookie for each in ("httponly", "samesite=strict", "path=/api/v1"))


async def test_an_expired_link_and_no_code_open_nothing(world: World) -> None:
    async with serving(world.reeve()) as server:
        old = await new_link(server.reeve.internals.store.credentials, time.time() - 3600, server.url)
        answers = [await server.client.get(each) for each in (old, "/login", "/login?code=guess")]

    assert [each.status_code for each in answers] == [403, 403, 403]


async def test_a_browser_has_all_scopes_and_survives_a_restart_of_the_server(world: World) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        scopes = (await browser.get("/api/v1/session")).json()["scopes"]
        cookie = dict(browser.cookies)
    async with serving(world.reeve()) as server:
        await server.token(Role.VIEWER)  # tokens are required now
        answer = await server.client.get("/api/v1/session", cookies=cookie)

    assert (scopes, answer.status_code) == (["approve", "call", "manage", "metrics", "read"], 200)


async def test_a_change_needs_the_csrf_token_and_the_origin_of_our_page(world: World) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        good = await browser.post(CALL, json=SUM)
        token = browser.headers.pop("x-csrf-token")
        without_token = await browser.post(CALL, json=SUM)
        wrong_token = await browser.post(CALL, json=SUM, headers={"x-csrf-token": "0" * 32})
        browser.headers.pop("origin")
        without_origin = await browser.post(CALL, json=SUM, headers={"x-csrf-token": token})

    assert good.status_code == 200
    assert [each.status_code for each in (without_token, wrong_token, without_origin)] == [403, 403, 403]


@pytest.mark.parametrize("origin", ["null", "https://evil.example", "http://127.0.0.1:1"])
async def test_another_page_gets_nothing_done_with_the_cookie(world: World, origin: str) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        answer = await browser.post(CALL, json=SUM, headers={"origin": origin})
        records = await server.reeve.audit.recent(last_n=1, filters={})

    assert (answer.status_code, records) == (403, [])


async def test_logging_out_ends_the_session(world: World) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        await server.token(Role.VIEWER)
        out = await browser.delete("/api/v1/session")
        after = await browser.get("/api/v1/status")

    assert (out.status_code, after.status_code) == (204, 401)
