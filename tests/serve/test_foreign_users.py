"""Without tokens, other local users cannot connect."""

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.responses import PlainTextResponse

from tests.serve.mcp.http_server import serving
from tests.serve.sample_server import served
from tests.world import World
from toolreeve.serve.peer_uid import TABLES, find_allowed_uid, search_proc

SOMEBODY_ELSE = os.getuid() + 1
AT_ONCE = struct.pack("ii", 1, 0)
"""So that a socket which is closed does not take its leave."""


FOREIGN = partial(find_allowed_uid, allowed=frozenset({SOMEBODY_ELSE}))
"""Serves for a user whom we are not."""


class Application:
    def __init__(self) -> None:
        self.ran: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.ran.append(scope["path"])
        await PlainTextResponse("let in")(scope, receive, send)


@asynccontextmanager
async def guarded(admit: Any, host: str = "127.0.0.1", application: Application | None = None) -> AsyncIterator[str]:
    async with served(application=application or Application(), place=host, admit=admit) as (url, _, _):
        yield url


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(("admit", "status"), [(find_allowed_uid, 200), (FOREIGN, 403)])
async def test_only_processes_of_the_serving_user_may_connect(admit: Any, status: int, host: str) -> None:
    async with guarded(admit, host) as url, httpx2.AsyncClient() as client:
        answer = await client.get(url)

    assert answer.status_code == status
    assert ("let in" in answer.text) is (status == 200)


async def test_a_foreign_user_is_refused_request_by_request() -> None:
    async with guarded(FOREIGN) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" * 2 + b"GET / HTTP/1.0\r\n\r\n")
        said = await asyncio.wait_for(reader.read(), 10)
        writer.close()

    assert said.count(b"HTTP/1.1") == said.count(b"403 Forbidden") == 3


async def test_a_request_sent_by_a_foreign_user_before_disconnecting_does_not_run() -> None:
    application = Application()
    async with guarded(FOREIGN, application=application) as url, httpx2.AsyncClient() as client:
        await client.get(url)
        # Gone before the loop comes round to greet it; what it sent is still there to be read.
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as stranger:
            stranger.send(b"POST /blind HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n")
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        async with httpx2.AsyncClient() as another:
            await another.get(url)

    assert application.ran == []


def searching(table: Path, *, supported: bool = True) -> Any:
    """On a machine with this table, and no other way to be asked."""
    return partial(
        find_allowed_uid, find=partial(search_proc, tables=dict.fromkeys(TABLES, table)), supported=supported
    )


@pytest.mark.parametrize(("tells", "status"), [(True, 403), (False, 200)], ids=["Linux", "elsewhere"])
async def test_without_a_connection_table_linux_refuses_everybody(tells: bool, status: int, tmp_path: Path) -> None:
    async with guarded(searching(tmp_path / "missing", supported=tells)) as url, httpx2.AsyncClient() as client:
        assert (await client.get(url)).status_code == status


async def test_with_an_unreadable_connection_table_everybody_is_refused(tmp_path: Path) -> None:
    async with guarded(searching(tmp_path)) as url, httpx2.AsyncClient() as client:
        assert (await client.get(url)).status_code == 403


async def test_the_door_without_tokens_is_open_to_its_own_user(world: World) -> None:
    async with serving(world.reeve()) as server:
        assert (await server.ask("tools/list")).status_code == 200
