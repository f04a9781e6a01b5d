"""Libraries with their own HTTP client are under the same guard."""

import httpx2
import pytest

from tests.guard.network.client.client import http, redirects
from tests.network import web_server
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings


async def test_a_librarys_own_client_is_under_the_same_guard_also_when_it_follows_redirects() -> None:
    async with (
        web_server() as secret,
        web_server(redirects(lambda _: secret.url())) as web,
        http(f"127.0.0.1:{web.port}") as client,
        client.library_client() as library,
    ):
        assert (await library.get(web.url())).status_code == 302
        for url in (
            web.url(),
            secret.url(),
            "http://localhost/",
            "ftp://127.0.0.1/",
            f"http://2130706433:{secret.port}/",
        ):
            with pytest.raises(ToolError) as caught:
                await library.get(url, follow_redirects=True)
            assert caught.value.code is ErrorCode.URL_FORBIDDEN
        assert secret.connections == 0


async def test_a_configured_place_is_in_reach_of_its_own_transport_and_of_no_other() -> None:
    async with web_server() as server, web_server() as other, http("*") as client:
        transport = client.library_transport(configured=server.url("/mcp"))
        async with httpx2.AsyncClient(transport=transport) as own, client.library_client() as library:
            assert (await own.get(server.url("/elsewhere"))).status_code == 200
            for place, url in ((own, other.url()), (library, server.url())):
                with pytest.raises(ToolError) as caught:
                    await place.get(url)
                assert caught.value.code is ErrorCode.URL_FORBIDDEN
        assert (server.connections, other.connections) == (1, 0)


async def test_a_configured_place_opens_neither_what_is_denied_nor_a_metadata_address() -> None:
    async with web_server() as server:
        denying = GuardedHttp(NetworkGuard(NetworkSettings(deny=("127.0.0.0/8",))))
        for url in (server.url(), "http://169.254.169.254/mcp", "http://2852039166/mcp"):
            async with httpx2.AsyncClient(transport=denying.library_transport(configured=url)) as own:
                with pytest.raises(ToolError) as caught:
                    await own.get(url)
                assert caught.value.code is ErrorCode.URL_FORBIDDEN
        assert server.connections == 0
