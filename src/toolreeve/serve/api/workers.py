"""The endpoint about workers: who serves which pool, and what waits."""

from typing_extensions import TypedDict

from toolreeve.core.errors import ToolError
from toolreeve.serve.api.endpoint import ApiRequest, Endpoints
from toolreeve.serve.api.problems import Problem

workers = Endpoints("workers")


class WorkerRow(TypedDict):
    name: str
    pool: str
    host: str
    pid: int
    version: str
    state: str
    capacity: int
    running: int
    since: float


class WorkerList(TypedDict):
    """`nats` is where they are reached, empty if no pools are configured; `waiting` are the calls that no worker has
    taken yet, by pool."""

    nats: str
    workers: list[WorkerRow]
    waiting: dict[str, int]


@workers.get("/workers")
async def list_workers(request: ApiRequest) -> WorkerList:
    """List the workers of all pools."""
    try:
        fleet = await request.services.reeve.internals.fleet()
    except ToolError as problem:
        raise Problem(503, problem.message, code=problem.code) from None
    if fleet is None:
        return WorkerList(nats="", workers=[], waiting={})
    rows = [WorkerRow(**each.to_dict()) for each in fleet.workers]  # type: ignore[typeddict-item]
    return WorkerList(nats=fleet.nats, workers=rows, waiting=dict(fleet.waiting))
