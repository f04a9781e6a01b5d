"""Calls over REST: the list and its filters, detail, rerun and undo."""

from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.config.sections.policy import Policy
from toolreeve.core.call import Role


async def test_the_list_pages_by_cursor_and_filters(world: World) -> None:
    async with serving(world.reeve()) as server:
        for number in range(5):
            await server.call("calculate", {"expression": str(number)})
        await server.call("read_file", {"path": "missing"})
        first = (await server.client.get("/api/v1/calls?limit=4")).json()
        second = (await server.client.get(f"/api/v1/calls?limit=4&cursor={first['cursor']}")).json()
        failed = (await server.client.get("/api/v1/calls?outcome=failed")).json()
        searched = (await server.client.get("/api/v1/calls?q=missing")).json()
        done = (await server.client.get("/api/v1/calls?tool=calculate&decision=allow&danger=safe&since=1h")).json()

    assert [each["main"] for each in (*first["calls"], *second["calls"])] == ["missing", "4", "3", "2", "1", "0"]
    assert (first["total"], second["cursor"]) == (None, None)
    assert [each["code"] for each in failed["calls"]] == ["E_FILE_NOT_FOUND"]
    assert [each["tool"] for each in searched["calls"]] == ["read_file"]
    assert (len(done["calls"]), done["total"]) == (5, None)


async def test_a_call_is_shown_with_its_stages_result_and_copies(world: World) -> None:
    async with serving(world.reeve()) as server:
        made = (await server.call("calculate", {"expression": "6 * 7"})).json()["meta"]["call_id"]
        shown = (await server.client.get(f"/api/v1/calls/{made}")).json()
        missing = await server.client.get("/api/v1/calls/feedfacefeedface")

    assert [each["name"] for each in shown["stages"]][:3] == ["resolve", "validate", "decide"]
    assert {each["name"] for each in shown["stages"] if each["state"] == "skipped"} == {"approve", "recover"}
    assert {each["name"] for each in shown["stages"] if each["ms"] is None} == {"approve", "recover", "record"}
    assert (shown["args"], shown["result"]["data"]["result"]) == ({"expression": "6 * 7"}, 42)
    assert shown["copy"]["cli"] == """toolreeve call calculate --json '{"expression":"6 * 7"}'"""
    assert missing.status_code == 404


async def test_a_rerun_is_a_new_call_and_one_without_its_secrets_is_refused(world: World) -> None:
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
    async with serving(world.reeve()) as server:
        made = (await server.call("calculate", {"expression": "2 + 2"})).json()["meta"]["call_id"]
        leaky = (await server.call("calculate", {"expression": secret})).json()["meta"]["call_id"]
        again = await server.client.post(f"/api/v1/calls/{made}/rerun", json={})
        refused = await server.client.post(f"/api/v1/calls/{leaky}/rerun", json={})

    assert (again.json()["data"]["result"], again.json()["meta"]["call_id"] != made) == (4, True)
    assert (refused.status_code, "redacted" in refused.json()["detail"]) == (409, True)


async def test_a_file_that_was_written_whole_is_shown_as_a_difference(world: World) -> None:
    (world.workspace / "cart.py").write_text("VAT = 0.16\nname = 1\n")
    async with serving(world.reeve(settings=world.settings(policy=Policy(mode="accept_edits")))) as server:
        made = []
        for path, content in (("cart.py", "VAT = 0.19\nname = 1\n"), ("new.py", "x = 1\n")):
            call = await server.call("write_file", {"path": path, "content": content})
            made.append((await server.client.get(f"/api/v1/calls/{call.json()['meta']['call_id']}")).json()["diff"])

    assert "-VAT = 0.16\n+VAT = 0.19\n name = 1" in made[0]
    assert "+x = 1" in made[1]


async def test_undo_restores_a_file_and_the_list_says_so(world: World) -> None:
    file = world.workspace / "a.txt"
    file.write_text("before")
    async with serving(world.reeve(settings=world.settings(policy=Policy(mode="accept_edits")))) as server:
        call = await server.call("write_file", {"path": "a.txt", "content": "after"})
        made = call.json()["meta"]["call_id"]
        before = (await server.client.get(f"/api/v1/calls/{made}")).json()
        async with server.browser() as browser:
            undone = await browser.post(f"/api/v1/calls/{made}/undo", json={})
        after = (await server.client.get(f"/api/v1/calls/{made}")).json()

    assert (undone.status_code, file.read_text()) == (200, "before"), undone.text
    assert (before["undoable"], before["undone"], after["undoable"], after["undone"]) == (True, False, False, True)


async def test_a_token_without_the_tool_undo_undoes_nothing(world: World) -> None:
    file = world.workspace / "a.txt"
    file.write_text("before")
    async with serving(world.reeve(settings=world.settings(policy=Policy(mode="accept_edits")))) as server:
        whole = await server.token(Role.ADMIN, "ada")
        narrow = await server.token(Role.ADMIN, "ada", tools=["calculate"])
        call = await server.call("write_file", {"path": "a.txt", "content": "after"}, headers=whole)
        made = call.json()["meta"]["call_id"]
        refused = await server.client.post(f"/api/v1/calls/{made}/undo", json={}, headers=narrow)
        kept = file.read_text()
        undone = await server.client.post(f"/api/v1/calls/{made}/undo", json={}, headers=whole)

    assert (refused.status_code, kept) == (404, "after")
    assert (undone.json()["meta"]["approved_by"], file.read_text()) == ("ada via rest", "before")
