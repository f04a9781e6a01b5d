"""The endpoint about workers: who serves which pool, and what waits."""

from toolreeve.core.errors import ToolError
from toolreeve.execution.workers.registry import WorkerList
from toolreeve.serve.api.endpoint import ApiRequest, Endpoints
from toolreeve.serve.api.problems import Problem

workers = Endpoints("workers")


@workers.get("/workers")
async def list_workers(request: ApiRequest) -> WorkerList:
    """List the workers of all pools."""
    try:
        fleet = await request.services.reeve.internals.fleet()
    except ToolError as problem:
        raise Problem(503, problem.message, code=problem.code) from None
    return WorkerList(nats="", workers=[], waiting={}) if fleet is None else fleet
