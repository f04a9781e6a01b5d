from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.core.call import Role


async def test_a_policy_is_checked_and_simulated_over_http(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.ADMIN)
        for _ in range(2):
            await server.call("calculate", {"expression": "1+1"}, headers=token)
        good = "rules:\n  - {id: never, tool: calculate, decision: deny}\n"
        bad = "rules:\n  - {tool: calculate, decsion: deny}\n"

        checked = (await server.client.post("/api/v1/policy/check", json={"policy": good}, headers=token)).json()
        wrong = (await server.client.post("/api/v1/policy/check", json={"policy": bad}, headers=token)).json()
        found = (await server.client.post("/api/v1/policy/simulate", json={"policy": good}, headers=token)).json()
        broken = (await server.client.post("/api/v1/policy/check", json={"policy": "rules: ["}, headers=token)).json()
        schema = (await server.client.get("/api/v1/policy/schema", headers=token)).json()

    assert (broken["ok"], "YAML" in broken["problems"][0]["problem"]) == (False, True)
    assert "decision" in schema["$defs"]["rule"]["properties"]
    assert checked == {"ok": True, "rules": 1, "problems": []}
    assert (wrong["ok"], wrong["problems"][0]["line"]) == (False, 2)
    assert (found["total"], found["changed"]) == (2, 2)
    assert found["by"] == [{"from": "allow", "to": "deny", "n": 2}]
    assert found["calls"][0]["rule"] == "never"


async def test_recorded_calls_are_reviewed_only_by_those_who_see_all_of_them(world: World) -> None:
    async with serving(world.reeve()) as server:
        operator = await server.token(Role.OPERATOR)
        body = {"policy": "rules:\n  - {tool: calculate, decision: deny}\n"}

        simulated = await server.client.post("/api/v1/policy/simulate", json=body, headers=operator)
        suggested = await server.client.get("/api/v1/policy/suggestions", headers=operator)

    assert (simulated.status_code, suggested.status_code) == (403, 403)


async def test_viewers_may_not_look_at_the_policy(world: World) -> None:
    async with serving(world.reeve()) as server:
        viewer = await server.token(Role.VIEWER)

        answer = await server.client.get("/api/v1/policy/suggestions", headers=viewer)

    assert answer.status_code == 403


async def test_suggestions_are_empty_before_anything_was_approved(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.ADMIN)

        answer = await server.client.get("/api/v1/policy/suggestions?since=1d", headers=token)

    assert answer.json() == {"suggestions": []}
