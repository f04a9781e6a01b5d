"""Routes and mounts over a real server: nothing behind access control is reached without it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route

from toolreeve.config.sections.serve import Serve
from toolreeve.serve.access import new_access_control
from toolreeve.serve.app import Application, HttpServer, bind
from toolreeve.serve.limits import read_limits
from toolreeve.serve.mcp.sdk_server import CREDENTIAL
from toolreeve.serve.tokens import read_tokens

TOKEN = "a-token-that-is-long-enough-for-a-server"
BEARER = {"authorization": f"Bearer {TOKEN}"}
PAGE = "https://console.example"


async def whoami(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{request.scope[CREDENTIAL].principal.user} at {request.url.path}")


ROUTES: list[BaseRoute] = [Route("/plain", whoami), Mount("/inner", Starlette(routes=[Route("/deep", whoami)]))]


@asynccontextmanager
async def serving() -> AsyncIterator[httpx2.AsyncClient]:
    tokens = read_tokens([{"token": "${secret:A}", "user": "ann", "role": "operator"}], lambda _: TOKEN)
    application = Application(new_access_control("127.0.0.1", tokens, origins=[PAGE]), ROUTES, lambda: None)
    server = HttpServer(application, read_limits(Serve()), grace=0.1)
    listener = bind("127.0.0.1", 0)
    running = asyncio.create_task(server.serve([listener]))
    try:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            yield client
    finally:
        server.should_exit = True
        await running
        listener.close()


@pytest.mark.parametrize("path", ["/plain", "/inner/deep", "/inner/missing", "/missing"])
async def test_no_route_or_mount_answers_without_a_token(path: str) -> None:
    async with serving() as client:
        assert (await client.get(path)).status_code == 401


@pytest.mark.parametrize("path", ["/plain", "/inner/deep"])
async def test_a_route_and_a_mount_know_whose_request_it_is(path: str) -> None:
    async with serving() as client:
        answer = await client.get(path, headers=BEARER)

    assert (answer.status_code, answer.text) == (200, f"ann at {path}")


@pytest.mark.parametrize("path", ["/missing", "/inner/missing", "/plain/", "/plain/deep"])
async def test_an_unknown_path_is_not_found_and_not_redirected(path: str) -> None:
    async with serving() as client:
        assert (await client.get(path, headers=BEARER)).status_code == 404


@pytest.mark.parametrize("path", ["/plain", "/inner/deep"])
async def test_a_configured_page_may_read_every_mount_and_another_none(path: str) -> None:
    async with serving() as client:
        preflight = await client.options(path, headers={"origin": PAGE, "access-control-request-method": "GET"})
        answer = await client.get(path, headers={**BEARER, "origin": PAGE})
        other = await client.get(path, headers={**BEARER, "origin": "https://evil.example"})

    assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, PAGE)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, PAGE)
    assert (other.status_code, "access-control-allow-origin" in other.headers) == (403, False)


async def test_a_foreign_host_name_reaches_no_mount() -> None:
    async with serving() as client:
        assert (await client.get("/inner/deep", headers={**BEARER, "host": "rebound.example"})).status_code == 421
