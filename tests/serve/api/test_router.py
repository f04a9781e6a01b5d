"""Access to every endpoint by every kind of credential: a table over all routes."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from tests.serve.api.api_server import PROBLEM, ApiServer, serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.api.catalogue import ENDPOINTS
from toolreeve.serve.api.endpoint import SSE, Endpoint
from toolreeve.serve.tokens import ROLE_SCOPES, AccessScope


async def status_of(server: ApiServer, endpoint: Endpoint, headers: dict[str, str]) -> int:
    """The status for a body that no endpoint accepts: what is behind access control does nothing."""
    path = "/api/v1" + re.sub(r"{[^}]*}", "missing", endpoint.path)
    shown = {**headers, "content-type": "application/json"}
    async with server.client.stream(endpoint.method, path, content=b"[]", headers=shown) as answer:
        return answer.status_code


async def test_every_endpoint_is_open_to_exactly_the_roles_that_have_its_scope(world: World) -> None:
    async with serving(world.reeve()) as server:
        tokens = {role: await server.token(role) for role in Role}
        found = {
            (endpoint.name, role): await status_of(server, endpoint, headers) not in (401, 403)
            for endpoint in ENDPOINTS
            for role, headers in tokens.items()
            if endpoint.name != "end_session"
        }
        closed = {each.name: await status_of(server, each, {}) for each in ENDPOINTS}

    scopes = {each.name: each.scope for each in ENDPOINTS}
    assert found == {(name, role): scopes[name] in ROLE_SCOPES[role] for name, role in found}
    assert set(closed.values()) == {401}


async def test_without_tokens_a_local_program_may_read_and_call_but_not_decide_or_manage(world: World) -> None:
    async with serving(world.reeve()) as server:
        found = {(each.scope, await status_of(server, each, {}) == 403) for each in ENDPOINTS}

    assert all(refused == (scope in (AccessScope.APPROVE, AccessScope.MANAGE)) for scope, refused in found)


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (("POST", "/tools/calculate/call", b"{"), 400),
        (("POST", "/tools/calculate/call", b'{"args": {}, "more": 1}'), 422),
        (("POST", "/tools/calculate/call", b'{"args": "text"}'), 422),
        (("POST", "/tools/calculate/call", b"[" * 100_000), 400),
        (("POST", "/tools/calculate/call", b'{"args": {"expression": "1"}, "timeout": -1}'), 422),
        (("GET", "/calls?limit=0", b""), 422),
        (("GET", "/calls?nope=1", b""), 422),
        (("GET", "/calls?limit=1&limit=2", b""), 422),
        (("GET", "/calls?cursor=bm9wZTox", b""), 422),
        (("GET", "/calls?cursor=%ff", b""), 422),
        (("GET", "/audit?since=yesterday", b""), 422),
        (("GET", "/metrics/series?range=90y", b""), 422),
        (("GET", "/status?x=1", b""), 422),
        (("PATCH", "/status", b""), 405),
        (("GET", "/nope", b""), 404),
    ],
)
async def test_bad_input_is_a_clear_problem_and_nothing_runs(
    world: World, request_line: tuple[str, str, bytes], status: int
) -> None:
    method, path, body = request_line
    async with serving(world.reeve()) as server:
        headers = {"content-type": "application/json"}
        answer = await server.client.request(method, f"/api/v1{path}", content=body, headers=headers)
        records = await server.reeve.audit.recent(last_n=1, filters={})

    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert (problem["status"], problem["code"].startswith("E_"), bool(problem["detail"])) == (status, True, True)
    assert records == []


async def test_arguments_beside_args_are_named_with_the_fields_that_are_known(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.client.post("/api/v1/tools/calculate/call", json={"expression": "1"})

    assert "expression: is unknown; known are args, " in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_another_content_type_is_refused(world: World, kind: str) -> None:
    async with serving(world.reeve()) as server:
        body = b'{"args": {"expression": "1"}}'
        answer = await server.client.post("/api/v1/tools/calculate/call", content=body, headers={"content-type": kind})

    assert answer.status_code == 415


async def test_a_body_of_fifty_megabytes_is_refused_and_the_server_goes_on(world: World) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b" " * 1_000_000

    async with serving(world.reeve()) as server:
        headers = {"content-type": "application/json"}
        url = "/api/v1/tools/calculate/call"
        announced = await server.client.post(url, content=b" " * 5_000_000, headers=headers)
        try:
            streamed = (await server.client.post(url, content=pieces(), headers=headers)).status_code
        except httpx2.TransportError:  # the server answered and closed before all was sent
            streamed = 413
        after = await server.call("calculate", {"expression": "1"})

    assert (announced.status_code, streamed, after.status_code) == (413, 413, 200)


async def test_an_origin_of_null_is_refused_as_a_problem(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.client.get("/api/v1/status", headers={"origin": "null"})

    assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM)


async def test_responses_are_never_cached_or_sniffed(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.client.get("/api/v1/status")
        async with server.client.stream("GET", "/api/v1/events") as stream:
            kind = stream.headers["content-type"]

    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")
    assert kind.startswith(SSE)
