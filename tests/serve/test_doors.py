"""All doors together: metrics that the dashboards and alerts rely on, and what needs a credential."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from tests.serve.api.api_server import serving
from tests.serve.mcp.http_server import HEADERS, Sleeper, request
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.tokens import AccessScope

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
NAME = re.compile(r"\btoolreeve_[a-z_]+\b")


def exported(text: str) -> set[str]:
    """The names of all samples, declared or present."""
    declared = re.findall(r"^# TYPE (\S+) (\S+)", text, re.MULTILINE)
    names = {name for name, _ in declared}
    return names | {
        f"{name}{end}" for name, kind in declared if kind == "histogram" for end in ("_bucket", "_sum", "_count")
    }


async def test_every_metric_of_the_dashboard_and_the_alerts_exists(world: World) -> None:
    dashboard = json.loads((GRAFANA / "dashboard.json").read_text())
    alerts = yaml.safe_load((GRAFANA / "alerts.yaml").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    queries += [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    async with serving(world.reeve()) as server:
        await server.call("calculate", {"expression": "1"})
        answer = await server.client.get("/metrics")

    used = {name for query in queries for name in NAME.findall(query)}
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert len(used) >= 15
    assert used - exported(answer.text) == set()


async def test_metrics_need_a_credential_once_there_are_tokens_and_health_never_does(world: World) -> None:
    async with serving(world.reeve()) as server:
        viewer = await server.token(Role.VIEWER)
        collector = await server.token(Role.VIEWER, "prometheus", scopes=[AccessScope.METRICS])
        answers = [
            await server.client.get("/metrics"),
            await server.client.get("/metrics", headers=viewer),
            await server.client.get("/metrics", headers=collector),
            await server.client.get("/health"),
        ]

    assert [each.status_code for each in answers] == [401, 403, 200, 200]


async def test_a_token_for_reading_lists_what_reads_and_one_for_metrics_no_tools(world: World) -> None:
    asked: dict[str, Any] = {"json": request("tools/list"), "headers": {**HEADERS, "mcp-method": "tools/list"}}
    async with serving(world.reeve()) as server:
        answers = []
        for scope in (AccessScope.READ, AccessScope.CALL, AccessScope.METRICS):
            asked["headers"] |= await server.token(Role.OPERATOR, scopes=[scope])
            answers.append(await server.client.post("/mcp", **asked))

    assert [each.status_code for each in answers] == [200, 200, 403]
    assert ["write_file" in each.text for each in answers] == [False, True, False]
    assert "read_file" in answers[0].text


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def call_over_mcp(client: httpx2.AsyncClient, name: str, args: dict[str, str], token: dict[str, str]) -> str:
    """The status and text of a call that takes the fast path."""
    params = {"name": name, "arguments": args, "_meta": META}
    kinds = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
    headers = {**token, **kinds, "mcp-method": "tools/call", "mcp-name": name}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = await client.post("/mcp", json=body, headers=headers)
    return f"{answer.status_code} {answer.text}"


async def test_a_revoked_token_is_refused_on_a_connection_that_it_used(world: World) -> None:
    async with serving(world.reeve()) as server, httpx2.AsyncClient(base_url=server.url) as client:
        before = [await call_over_mcp(client, "calculate", {"expression": "1"}, {}) for _ in range(2)]
        token = await server.token(Role.OPERATOR)
        (number,) = server.secrets.values()
        async with httpx2.AsyncClient(base_url=server.url) as other:
            used = [await call_over_mcp(other, "calculate", {"expression": "1"}, token) for _ in range(2)]
            await server.reeve.internals.store.credentials.revoke(number)
            await server.until(token, 401)
            after = await call_over_mcp(other, "calculate", {"expression": "1"}, token)
        without = await call_over_mcp(client, "calculate", {"expression": "1"}, {})

    assert [each[:3] for each in (*before, *used)] == ["200"] * 4
    assert (after, without) == ("401 unknown bearer token", "401 a bearer token is required")


FAST = {"mcp-method": "tools/call", "mcp-name": "sleep"}
SLEEP = request("tools/call", {"name": "sleep", "arguments": {}})
OPEN: dict[str, tuple[str, str, Any, dict[str, str]]] = {
    "events": ("GET", "/api/v1/events", None, {}),
    "REST": ("POST", "/api/v1/tools/sleep/call", {"args": {}}, {"accept": "text/event-stream"}),
    "MCP, fast path": ("POST", "/mcp", SLEEP, {**HEADERS, **FAST}),
    "MCP, SDK": ("POST", "/mcp", {**SLEEP, "extra": 1}, {**HEADERS, **FAST}),
}


@pytest.mark.parametrize("kind", OPEN)
async def test_revoking_a_token_ends_what_is_open_in_its_name_at_once_and_nothing_else(world: World, kind: str) -> None:
    """Not at the next frame or heartbeat. A call that runs for it is cancelled."""
    method, path, body, headers = OPEN[kind]
    sleeper = Sleeper()
    async with (
        serving(world.reeve(tools=[sleeper.tool()])) as server,
        httpx2.AsyncClient(base_url=server.url) as client,
    ):
        admin = await server.token(Role.ADMIN)
        token = await server.token(Role.OPERATOR, "olaf")
        async with server.client.stream("GET", "/api/v1/events?kinds=call.finished", headers=admin) as kept:
            lines = kept.aiter_lines()
            assert await anext(lines) == "retry: 1000"
            reading = asyncio.create_task(
                read_all(client, method, path, json=body, headers={**headers, **token}, timeout=60)
            )
            if kind == "events":
                while (await server.client.get("/metrics", headers=admin)).text.count("_event_listeners 2") < 1:
                    assert not reading.done()
            else:
                await sleeper.runs.wait()
            number = server.secrets[token["authorization"].split()[1]]
            await server.client.delete(f"/api/v1/tokens/{number}", headers=admin)
            with pytest.raises(httpx2.TransportError):
                await reading
            if kind != "events":
                await sleeper.ended.wait()
            await server.reeve.call("calculate", expression="1")
            assert (await anext(lines), (await anext(lines))[:4]) == ("", "id: ")


async def read_all(client: httpx2.AsyncClient, method: str, path: str, **more: Any) -> None:
    async with client.stream(method, path, **more) as answer:
        async for _ in answer.aiter_bytes():
            pass
