"""A session belongs to one client instance: grants, undo and the record follow it."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest

from tests.serve.mcp.http_server import HEADERS, HttpTestServer, request, serving
from tests.world import World
from toolreeve.serve.access import Header
from toolreeve.serve.mcp.client_session import COOKIE, find_session
from toolreeve.serve.mcp.protocol import CAPABILITIES_KEY
from toolreeve.serve.tokens import ANONYMOUS

TOKEN = {"token": "0123456789abcdef-one", "user": "ann", "role": "operator"}
BEARER = {"authorization": f"Bearer {TOKEN['token']}"}
FORMS: Mapping[str, Any] = {CAPABILITIES_KEY: {"elicitation": {"form": {}}}}
WRITE = {"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}}
FOR_SESSION = {"approval": {"action": "accept", "content": {"decision": "allow for this session"}}}


async def ask(client: httpx2.AsyncClient, server: HttpTestServer, **more: Any) -> dict[str, Any]:
    """A call to `write_file` by a client that shows forms."""
    headers = {**HEADERS, "mcp-method": "tools/call", "mcp-name": "write_file"}
    said = request("tools/call", {**WRITE, **more}, meta=FORMS)
    answer = await client.post(server.url, json=said, headers=headers)
    return dict(answer.json()["result"])


async def write_for_the_session(client: httpx2.AsyncClient, server: HttpTestServer) -> dict[str, Any]:
    asked = await ask(client, server)
    assert asked["resultType"] == "input_required"
    return await ask(client, server, inputResponses=FOR_SESSION, requestState=asked["requestState"])


@pytest.mark.parametrize(("tokens", "shown"), [((), {}), ((TOKEN,), BEARER)])
async def test_what_one_client_is_granted_for_its_session_lets_no_other_client_write(
    world: World, tokens: Any, shown: Mapping[str, str]
) -> None:
    async with (
        serving(world.reeve(), tokens=tokens) as server,
        httpx2.AsyncClient(headers=shown) as first,
        httpx2.AsyncClient(headers=shown) as second,
    ):
        await write_for_the_session(first, server)
        again = await ask(first, server)
        other = await ask(second, server)
        sessions = {each["session"] for each in await server.reeve.audit.recent(last_n=20, filters={})}

    assert again["isError"] is False
    assert other["resultType"] == "input_required"
    assert len(sessions) == 2


async def test_a_client_keeps_its_session_over_connections_by_its_cookie(world: World) -> None:
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with serving(world.reeve()) as server, httpx2.AsyncClient(limits=limits) as client:
        await write_for_the_session(client, server)
        again = await ask(client, server)

    assert again["isError"] is False


async def test_a_client_that_keeps_neither_cookies_nor_connections_can_still_answer(world: World) -> None:
    async with serving(world.reeve()) as server:
        async with httpx2.AsyncClient() as client:
            asked = await ask(client, server)
        async with httpx2.AsyncClient() as client:
            done = await ask(client, server, inputResponses=FOR_SESSION, requestState=asked["requestState"])
        async with httpx2.AsyncClient() as client:
            again = await ask(client, server)

    assert done["isError"] is False
    assert again["resultType"] == "input_required"


async def test_a_header_names_the_session_of_a_client_without_cookies(world: World) -> None:
    named = {"toolreeve-session": "agent-1"}
    async with serving(world.reeve()) as server:
        async with httpx2.AsyncClient(headers=named) as client:
            await write_for_the_session(client, server)
        async with httpx2.AsyncClient(headers=named) as client:
            again = await ask(client, server)

    assert again["isError"] is False


def session(*headers: Header, connection: Any = None, credential: Any = ANONYMOUS) -> str:
    return find_session(headers, connection or SimpleNamespace(session_key=b""), credential).id


def test_a_connection_is_one_session_unless_a_proxy_may_share_it() -> None:
    connection: Any = SimpleNamespace(session_key=b"")
    forwarded = (b"x-forwarded-for", b"10.0.0.1")

    assert session(connection=connection) == session(connection=connection)
    assert session(connection=connection) != session()
    assert session(forwarded, connection=connection) != session(forwarded, connection=connection)


def test_a_session_cannot_be_taken_over_by_its_id_or_with_another_credential() -> None:
    key = b"0" * 32
    cookie = (b"cookie", COOKIE + b"=" + key)
    known = session(cookie)
    other: Any = SimpleNamespace(id="another")

    assert session(cookie) == known
    assert session(cookie, credential=other) != known
    assert session((b"toolreeve-session", key)) != known
    assert session((b"toolreeve-session", known.encode())) != known
    assert session((b"cookie", COOKIE + b"=" + known.encode())) != known


@pytest.mark.parametrize(("shown", "kept"), [({}, True), ({"toolreeve-session": "mine"}, False)])
async def test_a_grant_outlives_the_server_only_for_a_client_that_we_named(
    world: World, shown: Mapping[str, str], kept: bool
) -> None:
    async with httpx2.AsyncClient(headers=shown) as client:
        async with serving(world.reeve()) as server:
            await write_for_the_session(client, server)
            assert (await ask(client, server))["isError"] is False
        async with serving(world.reeve()) as server:
            again = await ask(client, server)

    assert (again.get("isError") is False) is kept
