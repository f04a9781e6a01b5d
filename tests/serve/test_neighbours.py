"""Other users of the machine reach loopback as well."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from tests.serve.mcp.house import serving
from tests.world import World
from toolreeve.serve.app import bind
from toolreeve.serve.neighbours import NeighbourProtocol

SOMEBODY_ELSE = os.getuid() + 1


class Foreign(NeighbourProtocol):
    """Serves for a user whom we are not."""

    welcome = frozenset({SOMEBODY_ELSE})


@asynccontextmanager
async def served(protocol: type[NeighbourProtocol], host: str) -> AsyncIterator[str]:
    ran = PlainTextResponse("let in")
    server = uvicorn.Server(uvicorn.Config(ran, http=protocol, lifespan="off", log_config=None))
    with bind(host, 0) as place:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([place]))
            yield f"http://{f'[{host}]' if ':' in host else host}:{place.getsockname()[1]}"
            server.should_exit = True


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(("protocol", "status"), [(NeighbourProtocol, 200), (Foreign, 403)])
async def test_only_programs_of_the_user_who_serves_come_in(
    protocol: type[NeighbourProtocol], status: int, host: str
) -> None:
    async with served(protocol, host) as url, httpx2.AsyncClient() as client:
        answer = await client.get(url)

    assert answer.status_code == status
    assert ("let in" in answer.text) is (status == 200)


async def test_a_stranger_is_refused_request_by_request() -> None:
    async with served(Foreign, "127.0.0.1") as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + b"GET / HTTP/1.0\r\n\r\n")
        said = await asyncio.wait_for(reader.read(), 10)
        writer.close()

    assert said.count(b"HTTP/1.1") == said.count(b"403 Forbidden") == 3


async def test_the_door_without_tokens_is_open_to_its_own_user(world: World) -> None:
    async with serving(world.reeve()) as house:
        assert (await house.ask("tools/list")).status_code == 200
