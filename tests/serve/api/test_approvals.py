"""Approvals over REST: the inbox, decisions that count once, and those that do not."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from tests.serve.api.api_server import PROBLEM, ApiServer, read_events, serving
from tests.world import World
from toolreeve import tool
from toolreeve.approval.channels.inbox import InboxChannel
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.labels import UNTRUSTED
from toolreeve.core.result import Output

INBOX = "/api/v1/approvals"


async def ask(server: ApiServer, content: str = "after", **more: Any) -> tuple["asyncio.Task[Any]", dict[str, Any]]:
    """A call that waits for approval in the background, and its card."""
    principal = Principal(user=more.pop("user", "local"), role=Role.OPERATOR)
    call = ToolCall(tool="write_file", args={"path": "a.txt", "content": content}, principal=principal, origin="mcp")
    return await card_of(server, server.reeve.run(call))


async def card_of(server: ApiServer, calling: Coroutine[Any, Any, Any]) -> tuple["asyncio.Task[Any]", dict[str, Any]]:
    before = {each["id"] for each in await inbox(server)}
    task = asyncio.create_task(calling)
    for _ in range(400):
        if found := [each for each in await inbox(server) if each["id"] not in before]:
            return task, found[0]
        await asyncio.sleep(0.01)
    raise TimeoutError


@asynccontextmanager
async def watched(world: World) -> AsyncIterator[tuple[ApiServer, httpx2.AsyncClient]]:
    """A server, and a browser that shows its inbox."""
    channel = InboxChannel()
    async with (
        serving(world.reeve(approve=[channel]), inbox=channel) as server,
        server.browser() as browser,
        browser.stream("GET", "/api/v1/events?after=0") as events,
    ):
        lines = read_events(events.aiter_lines())
        await server.reeve.call("calculate", expression="1")
        assert {(await anext(lines)).get("event") for _ in range(2)} >= {"call.finished"}
        yield server, browser
        await lines.aclose()


async def inbox(server: ApiServer) -> list[dict[str, Any]]:
    return list((await server.reeve.approvals.list()).items)


async def decide(browser: httpx2.AsyncClient, number: str, **terms: Any) -> httpx2.Response:
    card = (await browser.get(f"{INBOX}/{number}")).json()
    await asyncio.sleep(0.35)  # the server refuses what nobody can have read
    return await browser.post(f"{INBOX}/{number}/decide", json={"digest": card["digest"], **terms})


async def test_a_decision_by_a_program_is_not_called_one_of_the_console(world: World) -> None:
    async with watched(world) as (server, _):
        waiting, asked = await ask(server)
        server.client.headers.update(await server.token(Role.ADMIN, "carl"))
        await decide(server.client, asked["id"], answer="deny")
        result = await waiting

    assert "refused by carl via rest" in result.to_text()


async def test_a_person_allows_a_call_that_waits_and_it_runs(world: World) -> None:
    async with watched(world) as (server, browser):
        waiting, asked = await ask(server)
        listed = (await browser.get(INBOX)).json()
        made = await decide(browser, asked["id"], answer="allow")
        result = await waiting
        after = (await browser.get(f"{INBOX}?state=all")).json()

    assert ([each["id"] for each in listed["approvals"]], listed["total"]) == ([asked["id"]], 1)
    assert "wants to" in listed["approvals"][0]["sentence"]
    assert (made.status_code, made.json()["call_id"]) == (200, result.meta.call_id)
    assert (result.success, (world.workspace / "a.txt").read_text()) == (True, "after")
    assert after["approvals"][0]["answered_by"] == "local via console"


async def test_a_denial_is_told_with_its_note_and_the_second_answer_is_a_conflict(world: World) -> None:
    async with watched(world) as (server, browser):
        waiting, asked = await ask(server)
        denied = await decide(browser, asked["id"], answer="deny", note="not this file")
        second = await decide(browser, asked["id"], answer="allow")
        result = await waiting

    assert (denied.status_code, result.error.code, "not this file" in result.error.message) == (
        200,
        "E_APPROVAL_DENIED",
        True,
    )
    assert (second.status_code, second.headers["content-type"]) == (409, PROBLEM)
    assert second.json()["context"]["answered_by"] == "local via console"


async def test_edited_arguments_run_in_place_of_the_others(world: World) -> None:
    async with watched(world) as (server, browser):
        waiting, asked = await ask(server)
        edited = {"path": "a.txt", "content": "edited"}
        wrong = await decide(browser, asked["id"], answer="allow", args={"path": 7})
        made = await decide(browser, asked["id"], answer="allow", args=edited)
        await waiting

    assert (wrong.status_code, made.status_code) == (422, 200)
    assert (world.workspace / "a.txt").read_text() == "edited"


async def test_an_answer_that_nobody_can_have_read_for_or_to_another_card_does_not_count(world: World) -> None:
    async with watched(world) as (server, browser):
        waiting, asked = await ask(server)
        card = (await browser.get(f"{INBOX}/{asked['id']}")).json()
        url = f"{INBOX}/{asked['id']}/decide"
        early = await browser.post(url, json={"digest": card["digest"], "answer": "allow"})
        other = await browser.post(url, json={"digest": "0" * 64, "answer": "allow"})
        unknown = await browser.post(f"{INBOX}/nope/decide", json={"digest": "x", "answer": "allow"})
        still = await inbox(server)
        waiting.cancel()

    assert [early.status_code, other.status_code, unknown.status_code] == [425, 422, 404]
    assert [each["id"] for each in still] == [asked["id"]]


async def test_a_batch_decides_each_question_by_itself(world: World) -> None:
    async with watched(world) as (server, browser):
        first, one = await ask(server, "one")
        second, two = await ask(server, "two")
        cards = [(await browser.get(f"{INBOX}/{each['id']}")).json() for each in (one, two)]
        await asyncio.sleep(0.35)
        items = [{"id": each["id"], "digest": each["digest"], "answer": "deny"} for each in cards]
        made = await browser.post(f"{INBOX}/decide", json={"items": [*items, {**items[0], "id": "nope"}]})
        results = await asyncio.gather(first, second)

    assert [each.get("state", each.get("status")) for each in made.json()["results"]] == ["denied", "denied", 404]
    assert [each.success for each in results] == [False, False]


async def test_an_operator_cannot_decide_and_does_not_see_questions_of_others(world: World) -> None:
    async with watched(world) as (server, _):
        operator = await server.token(Role.OPERATOR, "agent")
        waiting, asked = await ask(server, "very-private", user="ada")
        listed = await server.client.get(INBOX, headers=operator)
        shown = await server.client.get(f"{INBOX}/{asked['id']}", headers=operator)
        body = {"digest": "x", "answer": "allow"}
        tried = await server.client.post(f"{INBOX}/{asked['id']}/decide", json=body, headers=operator)
        waiting.cancel()

    assert (listed.json()["approvals"], listed.json()["total"], shown.status_code) == ([], 0, 404)
    assert tried.status_code == 403


async def test_a_session_grant_is_listed_and_revoked(world: World) -> None:
    async with watched(world) as (server, browser):
        waiting, asked = await ask(server)
        await decide(browser, asked["id"], answer="allow", scope="session")
        await waiting
        (grant,) = (await browser.get("/api/v1/policy/grants")).json()["grants"]
        revoked = await browser.delete(f"/api/v1/policy/grants/{grant['id']}")
        after = (await browser.get("/api/v1/policy/grants")).json()["grants"]

    assert (grant["tool"], revoked.status_code, after) == ("write_file", 204, [])


async def test_the_history_names_who_decided(world: World) -> None:
    async with watched(world) as (server, browser):
        waiting, asked = await ask(server)
        await decide(browser, asked["id"], answer="allow")
        await waiting
        history = (await browser.get(f"{INBOX}/history")).json()

    (decision,) = history["permissionDecisions"]
    assert (decision["id"], decision["source"], decision["optionId"]) == (
        asked["id"],
        "person:local via console",
        "allow",
    )


@tool(danger="safe", read_only=True)
async def read_mail() -> Output:
    """Read mail."""
    return Output(data={"body": "mail eve@partner.example"}, labels=UNTRUSTED)


@tool(danger="low")
async def send_mail(to: str) -> str:
    """Send mail."""
    return f"sent to {to}"


async def test_a_recipient_is_kept_as_known_only_where_the_card_offers_it(world: World) -> None:
    channel = InboxChannel()
    reeve = world.reeve(approve=[channel], tools=[read_mail, send_mail])
    async with serving(reeve, inbox=channel) as server, server.browser() as browser:
        with channel.watched():
            await server.call("read_mail", {})
            sending, waiting = await card_of(server, server.call("send_mail", {"to": "eve@partner.example"}))
            card = (await browser.get(f"{INBOX}/{waiting['id']}")).json()
            made = await decide(browser, card["id"], answer="allow", know=True)
            sent = await sending
            facts = await server.reeve.internals.store.flow_facts(time.time).list()
            other, asked = await ask(server)
            refused = await decide(browser, asked["id"], answer="allow", know=True)
            await decide(browser, asked["id"], answer="deny")
            await other

    assert (made.status_code, sent.status_code, card["knowable"]) == (200, 200, ["eve@partner.example"])
    assert [(each.kind, each.value, each.tool) for each in facts] == [("known", "eve@partner.example", "send_mail")]
    assert (refused.status_code, "leave out" in refused.json()["detail"]) == (422, True)
