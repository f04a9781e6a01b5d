"""Events over a WebSocket: the same as over SSE, with the same access control."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.config.sections.serve import Serve
from toolreeve.core.call import Role
from toolreeve.serve.app import WEBSOCKETS
from toolreeve.serve.tokens import AccessScope
from toolreeve.serve.websocket import is_upgrade

PATH = "/api/v1/events/ws"


def url_of(server: ApiServer, query: str = "", path: str = PATH) -> str:
    return f"{server.url.replace('http', 'ws')}{path}{query}"


@pytest.mark.parametrize("path", WEBSOCKETS)
async def test_a_websocket_carries_the_events_and_resumes_from_the_record(world: World, path: str) -> None:
    async with serving(world.reeve()) as server:
        await server.call("calculate", {"expression": "1"})
        async with connect(url_of(server, "?after=0&kinds=call.finished", path)) as socket:
            first = json.loads(await socket.recv())
            await server.call("calculate", {"expression": "2"})
            second = json.loads(await socket.recv())
        status = (await server.client.get("/api/v1/status")).json()

    assert [each["data"]["row"]["main"] for each in (first, second)] == ["1", "2"]
    assert (first["id"], first["name"], first["event"]) == (1, "call.finished", "tool_execution")
    assert status["version"]


async def test_a_websocket_needs_a_token_once_there_are_any_and_ends_with_it(world: World) -> None:
    async with serving(world.reeve()) as server:
        viewer = await server.token(Role.VIEWER)
        with pytest.raises(InvalidStatus):
            await connect(url_of(server))
        async with connect(url_of(server), additional_headers=viewer) as socket:
            await server.reeve.internals.store.credentials.revoke(next(iter(server.secrets.values())))
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008


async def test_websockets_count_for_their_token(world: World) -> None:
    async with serving(world.reeve(), settings=Serve(max_connections_per_token=2)) as server:
        viewer = await server.token(Role.VIEWER)
        await server.client.aclose()
        async with (
            connect(url_of(server), additional_headers=viewer) as first,
            connect(url_of(server), additional_headers=viewer),
        ):
            with pytest.raises(InvalidStatus):
                await connect(url_of(server), additional_headers=viewer)
            await first.close()
            await first.wait_closed()
            async with connect(url_of(server), additional_headers=viewer):
                pass


async def test_a_token_without_the_scope_read_sees_no_events(world: World) -> None:
    async with serving(world.reeve()) as server:
        metrics = await server.token(Role.VIEWER, scopes=(AccessScope.METRICS,))
        with pytest.raises(InvalidStatus):
            await connect(url_of(server), additional_headers=metrics)
        stream = await server.client.get("/streaming/sse", headers=metrics)

    assert (stream.status_code, "'read'" in stream.text) == (403, True)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None])
async def test_another_page_cannot_connect_with_the_cookie(world: World, origin: str | None) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        await server.token(Role.VIEWER)
        cookie = {"cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        headers = cookie if origin is None else {**cookie, "origin": origin}
        with pytest.raises(InvalidStatus):
            await connect(url_of(server), additional_headers=headers)
        async with connect(url_of(server), additional_headers={**cookie, "origin": server.url}):
            pass


async def test_a_foreign_host_and_a_bad_query_are_refused(world: World) -> None:
    async with serving(world.reeve()) as server:
        with pytest.raises(InvalidStatus):
            await connect(url_of(server, "?nope=1"))
        with pytest.raises(InvalidStatus):
            await connect(url_of(server), additional_headers={"host": "rebound.example"})


@given(st.binary(max_size=200))
def test_other_bytes_are_no_upgrade(data: bytes) -> None:
    assert not is_upgrade(data, [b"/api/v1/events/ws"])
