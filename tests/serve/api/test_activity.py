"""Activity over REST: calls over time, and by tool."""

from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve import tool
from toolreeve.config.sections.policy import Policy
from toolreeve.core.call import Role
from toolreeve.record.audit import AuditRecord
from toolreeve.record.journal import CALL
from toolreeve.serve.api.activity import BUCKETS, percentile
from toolreeve.serve.api.call_rows import outcome_of


async def test_calls_are_counted_by_time_outcome_and_tool(world: World) -> None:
    async with serving(world.reeve()) as server:
        for number in range(3):
            await server.call("calculate", {"expression": str(number)})
        await server.call("read_file", {"path": "missing"})
        await server.call("read_file", {"path": "/etc/shadow"})
        series = (await server.client.get("/api/v1/metrics/series?range=1h")).json()
        groups = (await server.client.get("/api/v1/metrics/summary?by=tool&range=1h")).json()["groups"]
        buckets = (await server.client.get("/api/v1/calls/histogram")).json()["buckets"]

    assert len(series["t"]) == len(series["calls"]) == len(series["p99"]) == BUCKETS
    assert (sum(series["calls"]), sum(series["failed"]), sum(series["refused"])) == (5, 1, 1)
    assert sorted(series["errors"].values()) == [1, 1]
    assert series["total_p95"] > 0
    assert [(each["key"], each["calls"], each["err"]) for each in groups] == [
        ("calculate", 3, 0.0),
        ("read_file", 2, 100.0),
    ]
    assert (len(buckets), sum(each["done"] for each in buckets), buckets[-1]["failed"]) == (90, 3, 1)


@tool(danger="safe", estimated_cost=0.25)
async def paint() -> str:
    """Paint a picture, for money."""
    return "done"


async def test_the_budget_is_told_over_time_and_clients_without_a_name_by_their_door(world: World) -> None:
    settings = world.settings(policy=Policy(budget_limit=1.0))
    async with serving(world.reeve(settings=settings, tools=[paint])) as server:
        admin = await server.token(Role.ADMIN)
        await server.call("paint", {}, headers=admin)
        await server.reeve.call("paint")
        series = (await server.client.get("/api/v1/metrics/series?range=1h", headers=admin)).json()
        clients = (await server.client.get("/api/v1/metrics/summary?by=client&range=1h", headers=admin)).json()[
            "groups"
        ]
        servers = (await server.client.get("/api/v1/metrics/summary?by=server&range=1h", headers=admin)).json()[
            "groups"
        ]

    assert (series["limit"], series["spent"], series["spent_at"][-1], series["spent_at"][0]) == (1.0, 0.5, 0.5, 0.0)
    assert [each["key"].split("/")[0] for each in clients] == ["python", "python-httpx2"]
    assert [each["calls"] for each in servers] == [2]


async def test_a_range_that_is_not_offered_is_refused(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.client.get("/api/v1/metrics/series?range=1y")

    assert answer.status_code == 422
    assert "range" in answer.json()["detail"]


def test_a_call_that_ended_with_a_question_did_not_fail() -> None:
    body = {"success": False, "code": "E_APPROVAL_PENDING"}
    record = AuditRecord(seq=1, kind=CALL, call_id="a", body=body)

    assert outcome_of(record) == "waiting"


def test_a_percentile_is_a_value_of_the_list() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0], 0.99) == 3.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
    assert percentile([float(value) for value in range(1, 101)], 0.95) == 95.0
