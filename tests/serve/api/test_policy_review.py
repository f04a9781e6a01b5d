from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.config.sections.policy import Policy
from toolreeve.core.call import Role
from toolreeve.record.audit import Filter
from toolreeve.serve.tokens import AccessScope


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


async def test_a_saved_policy_holds_at_once_in_every_process_and_is_recorded(world: World) -> None:
    path = world.workspace.parent / "policy.yaml"
    path.write_text("rules: []\n")
    settings = world.settings(policy=Policy(files=(str(path),)))
    denies = "rules:\n  - {id: never, tool: calculate, decision: deny}\n"
    async with serving(world.reeve(settings=settings)) as server, world.reeve(settings=settings) as other:
        admin = await server.token(Role.ADMIN, "ada")
        before = (await server.client.get("/api/v1/policy/file", headers=admin)).json()
        body = {"policy": denies, "version": before["version"]}
        saved = await server.client.put("/api/v1/policy", json=body, headers=admin)
        again = await server.client.put("/api/v1/policy", json=body, headers=admin)
        here = await server.reeve.call("calculate", expression="1")
        elsewhere = await other.call("calculate", expression="1")
        await other.audit.recent(last_n=1, filters={})  # writes what is buffered
        hits = (await server.client.get("/api/v1/policy/hits", headers=admin)).json()
        record = (await server.reeve.audit.list(Filter(kind="policy"), limit=1))[0]

    assert (saved.status_code, path.read_text()) == (200, denies)
    assert "+  - {id: never" in saved.json()["diff"]
    assert (again.status_code, again.json()["context"]["version"]) == (409, saved.json()["version"])
    assert [here.error and here.error.code, elsewhere.error and elsewhere.error.code] == ["E_DENIED", "E_DENIED"]
    assert [(each["rule"], each["calls"]) for each in hits["hits"]] == [("never", 2)]
    assert (record.body["user"], "never" in record.body["diff"]) == ("ada", True)


async def test_an_invalid_policy_or_one_without_the_scope_is_not_saved(world: World) -> None:
    path = world.workspace.parent / "policy.yaml"
    path.write_text("rules: []\n")
    settings = world.settings(policy=Policy(files=(str(path),)))
    async with serving(world.reeve(settings=settings)) as server:
        admin = await server.token(Role.ADMIN)
        approver = await server.token(Role.OPERATOR, "bea", scopes=[AccessScope.READ, AccessScope.APPROVE])
        version = (await server.client.get("/api/v1/policy/file", headers=admin)).json()["version"]
        body = {"policy": "rules:\n  - {tool: calculate, decsion: deny}\n", "version": version}
        vouched = {**body, "policy": "rules:\n  - {tool: http_get, decision: allow, labels: {vouched: all}}\n"}
        wrong = await server.client.put("/api/v1/policy", json=body, headers=admin)
        useless = await server.client.put("/api/v1/policy", json=vouched, headers=admin)
        refused = await server.client.put("/api/v1/policy", json=body, headers=approver)

    assert (wrong.status_code, wrong.json()["context"]["problems"][0]["line"]) == (422, 2)
    assert (useless.status_code, refused.status_code) == (422, 403)
    assert path.read_text() == "rules: []\n"


async def test_suggestions_are_empty_before_anything_was_approved(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.ADMIN)

        answer = await server.client.get("/api/v1/policy/suggestions?since=1d", headers=token)

    assert answer.json() == {"suggestions": []}
