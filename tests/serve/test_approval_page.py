"""The page of a signed link: opening it decides nothing, its form decides once."""

import asyncio
from typing import Any

import httpx2

from tests.approval.clients import Client
from tests.serve.api.api_server import ApiServer, serving
from tests.serve.mcp.http_server import HEADERS, request
from tests.world import World
from toolreeve.approval.channels.inbox import InboxChannel
from toolreeve.approval.pending import read_question
from toolreeve.core.call import Role
from toolreeve.policy.rules import PermissionRule
from toolreeve.serve.running_server import RunningServer, announce


async def link_to(server: ApiServer) -> str:
    """The path of a link to the only question, as soon as it is asked."""
    for _ in range(400):
        if items := (await server.reeve.approvals.list()).items:
            row = await server.reeve.approvals.store.find(items[0]["id"])
            assert row is not None
            return "/approve/" + server.reeve.approvals.new_link(read_question(row.id, row.question)).rpartition("/")[2]
        await asyncio.sleep(0.01)
    raise TimeoutError


async def test_opening_a_link_decides_nothing_and_its_form_decides_once(world: World) -> None:
    channel = InboxChannel()
    async with serving(world.reeve(approve=[channel]), inbox=channel) as server:
        with channel.watched():
            waiting = asyncio.create_task(server.reeve.call("write_file", path="<b>.txt", content="x\u202ey"))
            link = await link_to(server)
            pages = [await server.client.get(link) for _ in range(3)]
            still = (await server.reeve.approvals.list()).items
            await asyncio.sleep(0.35)
            made = await server.client.post(link, data={"answer": "allow"})
            again = await server.client.post(link, data={"answer": "deny"})
            result = await waiting

    assert [each.status_code for each in pages] == [200, 200, 200]
    assert (len(still), made.status_code, again.status_code, result.success) == (1, 200, 409, True)
    assert ("<b>" in pages[0].text, "&lt;b&gt;" in pages[0].text, "\u202e" in pages[0].text) == (False, True, False)
    assert "script-src 'self'" in pages[0].headers["content-security-policy"]


async def test_a_link_that_is_not_ours_opens_and_decides_nothing(world: World) -> None:
    async with serving(world.reeve()) as server:
        shown = await server.client.get("/approve/forged")
        made = await server.client.post("/approve/forged", data={"answer": "allow"})

    assert (shown.status_code, made.status_code) == (403, 403)


async def test_a_browser_sends_the_form_with_the_origin_of_the_page(world: World) -> None:
    async with serving(world.reeve()) as server:
        shown = await server.client.get("/approve/forged")
        null = await server.client.post("/approve/forged", data={"answer": "allow"}, headers={"origin": "null"})

    # With no-referrer, browsers send `Origin: null`.
    assert (shown.headers["referrer-policy"], null.text) == ("same-origin", "Invalid Origin header")


async def test_a_link_is_none_of_the_approvals_by_different_people(world: World) -> None:
    channel = InboxChannel()
    rule = PermissionRule(tool="write_file", decision="ask", approvals=2)
    async with serving(world.reeve(approve=[channel], policy=[rule]), inbox=channel) as server:
        with channel.watched():
            waiting = asyncio.create_task(server.reeve.call("write_file", path="a.txt", content="x"))
            link = await link_to(server)
            await server.client.get(link)
            await asyncio.sleep(0.35)
            allowed = await server.client.post(link, data={"answer": "allow"})
            denied = await server.client.post(link, data={"answer": "deny"})
            result = await waiting

    assert (allowed.status_code, "does not say who answers" in allowed.text) == (409, True)
    assert (denied.status_code, result.success) == (200, False)


NAMED = {"mcp-method": "tools/call", "mcp-name": "write_file"}
LINKS: dict[str, Any] = {"elicitation": {"url": {}}}


class LinkClient(Client):
    """A client of the legacy era that opens links; it keeps the notifications that it gets."""

    def __init__(self, server: ApiServer, action: str = "accept") -> None:
        super().__init__(capabilities=LINKS, answers=lambda _: {"action": action})
        self.client.inbox = f"{server.url}/inbox"
        self.told: list[tuple[str, Any]] = []

    async def notify(self, method: str, params: Any) -> None:
        self.told.append((method, params))


async def allow_in_console(server: ApiServer, address: str) -> None:
    """As a person who has logged in, and opens the address that the client was given."""
    number = address.rpartition("/inbox/")[2]
    async with server.browser() as browser:
        card = (await browser.get(f"/api/v1/approvals/{number}")).json()
        await asyncio.sleep(0.35)
        answer = {"answer": "allow", "digest": card["digest"]}
        made = await browser.post(f"/api/v1/approvals/{number}/decide", json=answer)
        assert made.status_code == 200, made.text


async def test_a_client_that_opens_links_gets_one_and_the_answer_in_the_console_counts(world: World) -> None:
    async with serving(world.reeve()) as server:
        client = LinkClient(server)
        waiting = asyncio.create_task(client.writes(server.reeve))
        await client.form.shown.wait()
        params = client.form.asked[0][1]
        shown = await server.client.get(params["url"])
        unanswered = not waiting.done()
        await allow_in_console(server, params["url"])
        result = await waiting

    assert (params["mode"], set(params)) == ("url", {"mode", "message", "url", "elicitationId"})
    assert (shown.status_code, unanswered, result.success) == (200, True, True)
    assert result.meta.approved_by == "local via console"
    assert client.told == [("notifications/elicitation/complete", {"elicitationId": params["elicitationId"]})]


async def test_the_link_that_a_client_gets_lets_it_approve_nothing(world: World) -> None:
    async with serving(world.reeve()) as server:
        agent = await server.token(Role.OPERATOR)
        client = LinkClient(server)
        waiting = asyncio.create_task(client.writes(server.reeve))
        await client.form.shown.wait()
        address = client.form.asked[0][1]["url"]
        number = address.rpartition("/inbox/")[2]
        page = await server.client.get(address)
        await asyncio.sleep(0.35)
        tried = [
            await server.client.post(address, data={"answer": "allow"}),
            await server.client.post(f"/approve/{number}", data={"answer": "allow"}),
            await server.client.post(f"/api/v1/approvals/{number}/decide", json={"answer": "allow"}),
            await server.client.post(f"/api/v1/approvals/{number}/decide", json={"answer": "allow"}, headers=agent),
        ]
        pending = [each["state"] for each in (await server.reeve.approvals.list()).items]
        waiting.cancel()
        await asyncio.wait({waiting})

    assert ("write_file" in page.text, pending) == (False, ["pending"])
    assert all(each.status_code in (401, 403, 405) for each in tried), [each.status_code for each in tried]


async def test_a_link_that_is_not_opened_leaves_the_question_pending(world: World) -> None:
    async with serving(world.reeve()) as server:
        result = await LinkClient(server, "decline").writes(server.reeve)
        pending = (await server.reeve.approvals.list()).items

    assert result.error is not None
    assert (result.error.code, len(pending)) == ("E_APPROVAL_PENDING", 1)


async def test_in_the_modern_era_the_page_is_waited_for_and_consent_alone_runs_nothing(world: World) -> None:
    call = {"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}
    meta = {"io.modelcontextprotocol/clientCapabilities": LINKS}

    async def send(client: httpx2.AsyncClient, **more: Any) -> Any:
        body = request("tools/call", call | more, meta=meta)
        return (await client.post("/mcp", json=body, headers=HEADERS | NAMED)).json()["result"]

    async with serving(world.reeve()) as server:
        without = await send(server.client)
        with announce(world.state, RunningServer(server.url, "1")):
            asked = await send(server.client)
            link = asked["inputRequests"]["approval"]["params"]["url"]
            opened = {"approval": {"action": "accept", "content": {"decision": "allow once"}}}
            retry = {"inputResponses": opened, "requestState": asked["requestState"]}
            waiting = asyncio.create_task(send(server.client, **retry))
            await server.client.get(link)
            ran = (world.workspace / "a.txt").exists()
            await allow_in_console(server, link)
            done = await waiting

    assert without["structuredContent"]["status"] == "pending", "no console is being served"
    assert asked["resultType"] == "input_required"
    assert (ran, (world.workspace / "a.txt").read_text()) == (False, "x")
    assert not done.get("isError"), done
