"""The page of a signed link: opening it decides nothing, its form decides once."""

import asyncio

from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.approval.channels.inbox import InboxChannel
from toolreeve.approval.pending import read_question
from toolreeve.policy.rules import PermissionRule


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
