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
        first = await server.client.post(link)
        second = await server.client.post(link)
        looked = await server.client.get(link)

    cookie = first.headers["set-cookie"].lower()
    assert (first.status_code, first.headers["location"], second.status_code) == (303, "/", 403)
    assert looked.status_code == 403
    assert all(each in cookie for each in ("httponly", "samesite=strict", "path=/api/v1"))


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_looking_at_a_link_does_not_use_it_up(world: World, method: str) -> None:
    async with serving(world.reeve()) as server:
        link = await link_of(server)
        looked = await server.client.request(method, link, headers={"user-agent": "Slackbot-LinkExpanding 1.0"})
        script = await server.client.get("/login/open.js")
        opened = await server.client.post(link, headers={"origin": server.url})

    assert (looked.status_code, "set-cookie" in looked.headers, opened.status_code) == (200, False, 303)
    assert ("submit()" in script.text, "javascript" in script.headers["content-type"]) == (True, True)


async def test_another_page_cannot_log_a_browser_in(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.client.post(await link_of(server), headers={"origin": "https://evil.example"})

    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_the_cookie_of_a_server_at_another_port_is_another_one(world: World) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        ((name, value),) = browser.cookies.items()
        await server.token(Role.VIEWER)
        others = {"toolreeve_console": value, "toolreeve_console_1": value}
        replaced = {"cookie": f"{name}={'0' * 64}; {name}={value}"}
        answers = [
            await server.client.get("/api/v1/session", headers={"cookie": f"{name}={value}"}),
            *[await server.client.get("/api/v1/session", headers={"cookie": f"{each}={value}"}) for each in others],
            await server.client.get("/api/v1/session", headers=replaced),
        ]

    assert name == f"toolreeve_console_{server.url.rpartition(':')[2]}"
    assert [each.status_code for each in answers] == [200, 401, 401, 401]


async def test_behind_tls_the_browser_itself_locks_the_cookie_to_the_host(world: World) -> None:
    async with serving(world.reeve()) as server:
        origin = server.url.replace("http:", "https:")
        cookie = (await server.client.post(await link_of(server), headers={"origin": origin})).headers["set-cookie"]
        await server.token(Role.VIEWER)
        answer = await server.client.get("/api/v1/session", headers={"cookie": cookie.partition(";")[0]})

    assert cookie.startswith("__Host-toolreeve_console=")
    assert ("Secure" in cookie, "Path=/;" in cookie, answer.status_code) == (True, True, 200)


async def test_an_expired_link_and_no_code_open_nothing(world: World) -> None:
    async with serving(world.reeve()) as server:
        old = await new_link(server.reeve.internals.store.credentials, time.time() - 3600, server.url)
        links = (old, "/login", "/login?code=guess")
        answers = [await server.client.request(method, each) for each in links for method in ("GET", "POST")]

    assert [each.status_code for each in answers] == [403] * 6


async def test_a_browser_has_all_scopes_and_survives_a_restart_of_the_server(world: World) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        scopes = (await browser.get("/api/v1/session")).json()["scopes"]
        (cookie,) = browser.cookies.values()
    async with serving(world.reeve()) as server:
        await server.token(Role.VIEWER)  # tokens are required now
        shown = {"cookie": f"toolreeve_console_{server.url.rpartition(':')[2]}={cookie}"}  # it has another port
        answer = await server.client.get("/api/v1/session", headers=shown)

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
