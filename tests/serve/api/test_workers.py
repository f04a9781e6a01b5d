"""GET /workers and /ready: without pools, and while NATS is away."""

from pathlib import Path

import httpx2

from tests.execution.workers.fleet import Fleet
from tests.execution.workers.nats_server import free_port
from tests.serve.api.api_server import serving
from tests.world import World


async def test_without_pools_there_are_no_workers_and_the_server_is_ready(world: World) -> None:
    async with serving(world.reeve()) as server:
        listed = (await server.client.get("/api/v1/workers")).json()
        ready = await server.client.get("/ready")

    assert listed == {"nats": "", "workers": [], "waiting": {}}
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "missing": []})


async def test_while_nats_is_away_the_server_is_healthy_but_not_ready(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, f"nats://127.0.0.1:{free_port()}")
    async with serving(fleet.gateway()) as server, httpx2.AsyncClient(base_url=server.url, timeout=20) as client:
        listed = await client.get("/api/v1/workers")
        ready = await client.get("/ready")
        health = await client.get("/health")

    assert listed.status_code == 503
    assert listed.json()["code"] == "E_WORKER_UNAVAILABLE"
    assert (ready.status_code, ready.json()) == (503, {"status": "unavailable", "missing": ["workers"]})
    assert health.status_code == 200
