"""Rates of A2A callers: limited per user, and told."""

from tests.serve.a2a.agents import post
from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.config.sections.a2a import A2a
from toolreeve.core.call import Role
from toolreeve.serve.a2a.rate import MAX_USERS, RequestRates


async def test_a_user_over_the_limit_is_refused_with_the_setting_and_others_are_not(world: World) -> None:
    settings = world.settings(a2a=A2a(requests_per_minute=2))
    async with serving(world.reeve(settings=settings)) as server:
        ada = await server.token(Role.OPERATOR, "ada")
        bob = await server.token(Role.OPERATOR, "bob")
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {}}
        answers = [await server.client.post("/a2a", json=body, headers=ada) for _ in range(2)]
        refused = await server.client.get("/a2a/rest/tasks", headers={**ada, "a2a-version": "1.0"})
        other = await post(server, "tasks/list", {}, **bob)

    told = [(each.headers["x-ratelimit-limit"], each.headers["x-ratelimit-remaining"]) for each in answers]
    assert told == [("2", "1"), ("2", "0")]
    assert (refused.status_code, "a2a.requests_per_minute" in refused.text) == (429, True)
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert other["result"]["total"] == 0


async def test_the_hour_has_a_limit_and_headers_of_its_own(world: World) -> None:
    settings = world.settings(a2a=A2a(requests_per_minute=10, requests_per_hour=2))
    async with serving(world.reeve(settings=settings)) as server:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {}}
        answers = [await server.client.post("/a2a", json=body) for _ in range(3)]

    told = [(each.status_code, each.headers["x-ratelimit-remaining-hour"]) for each in answers]
    assert told == [(200, "1"), (200, "0"), (429, "0")]
    assert answers[2].headers["x-ratelimit-remaining"] == "8"
    assert "a2a.requests_per_hour" in answers[2].text
    assert 60 < int(answers[2].headers["retry-after"]) <= 3600


def test_windows_end_and_memory_is_bounded() -> None:
    now = [0.0]
    rates = RequestRates(1, 2, lambda: now[0])
    refusals = []
    for now[0] in (0.0, 1.0, 61.0, 125.0, 3601.0):
        refusals.append(rates.take("ada")[1])
    for number in range(MAX_USERS + 10):
        rates.take(str(number))

    assert [("minute" in each, "hour" in each) for each in refusals] == [
        (False, False),
        (True, False),
        (False, False),
        (False, True),
        (False, False),
    ]
    assert len(rates._counts) == MAX_USERS
    assert RequestRates(0, 0, lambda: 0.0).take("ada") == ({}, "")
