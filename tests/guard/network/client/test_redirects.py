"""Redirects are checked at every hop, and carry no credentials to other origins."""

import pytest

from tests.guard.network.client.client import failure, http, redirects, send
from tests.network import Answer, web_server
from toolreeve.core.errors import ErrorCode


async def test_a_redirect_into_a_forbidden_place_is_refused_at_the_last_hop() -> None:
    async with web_server() as secret, web_server() as web:
        hops = {"/0": "/1", "/1": web.url("/2"), "/2": secret.url("/admin")}
        web.respond = redirects(lambda request: hops[request.path])
        async with http(f"127.0.0.1:{web.port}") as client:
            refused = await failure(client, web.url("/0"))

        assert refused.code is ErrorCode.URL_FORBIDDEN
        assert [request.path for request in web.received] == ["/0", "/1", "/2"]
        assert secret.connections == 0


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.2:{port}/",
        "//127.0.0.2:{port}/",
        "http://2130706434:{port}/",
        "http://0x7f.2:{port}/",
        "http://[::ffff:127.0.0.2]:{port}/",
        "http://[::1]:{port}/",
        "http://①②⑦.0.0.2:{port}/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/",
        "http://127.0.0.1:{port}\\@127.0.0.2/",
        "http://user@127.0.0.1:{port}/",
        "http://127.0.0.1:99999/",
        "http://[::1",
    ],
)
async def test_no_redirect_slips_past_the_guard(location: str) -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        web.respond = redirects(lambda _: location.format(port=web.port).encode().decode("latin-1"))

        assert (await failure(client, web.url())).code is ErrorCode.URL_FORBIDDEN
        assert len(web.received) == 1


async def test_a_relative_redirect_is_followed() -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        web.respond = lambda request: (
            Answer(status=301, headers={"location": "../b?x=ü".encode().decode("latin-1")})
            if request.path == "/a/x"
            else Answer(body=b"there")
        )

        reply = await send(client, web.url("/a/x"))

        assert (reply.body, reply.url) == (b"there", web.url("/b?x=%C3%BC"))


async def test_redirects_end() -> None:
    async with (
        web_server(redirects(lambda request: request.path + "x")) as web,
        http(f"127.0.0.1:{web.port}") as client,
    ):
        refused = await failure(client, web.url())

        assert refused.code is ErrorCode.HTTP_ERROR
        assert len(web.received) == 11


async def test_credentials_do_not_cross_origins() -> None:
    async with (
        web_server() as other,
        web_server(redirects(lambda _: other.url("/x"))) as web,
        http(f"127.0.0.1:{web.port}", f"127.0.0.1:{other.port}") as client,
    ):
        secrets = {"Authorization": "Bearer t", "X-Api-Key": "k", "Cookie": "a=b", "Accept": "text/html"}
        await send(client, web.url(), headers=secrets)

        arrived = other.received[0].headers
        assert arrived["accept"] == "text/html"
        assert not {"authorization", "x-api-key", "cookie"} & set(arrived)


async def test_credentials_stay_within_an_origin() -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        web.respond = lambda request: (
            Answer(status=302, headers={"location": "/b"}) if request.path == "/a" else Answer()
        )
        await send(client, web.url("/a"), headers={"Authorization": "Bearer t"})

        assert web.received[1].headers["authorization"] == "Bearer t"


async def test_a_body_is_not_carried_to_another_origin() -> None:
    async with (
        web_server() as other,
        web_server(redirects(lambda _: other.url("/x"), 307)) as web,
        http(f"127.0.0.1:{web.port}", f"127.0.0.1:{other.port}") as client,
    ):
        reply = await send(client, web.url(), "POST", body=b"private")

        assert (reply.status, reply.headers["location"]) == (307, other.url("/x"))
        assert other.received == []


@pytest.mark.parametrize(
    ("status", "method", "body"), [(301, "GET", b""), (302, "GET", b""), (303, "GET", b""), (308, "POST", b"data")]
)
async def test_a_post_is_redirected_as_browsers_do(status: int, method: str, body: bytes) -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        web.respond = lambda request: (
            Answer(status=status, headers={"location": "/b"}) if request.path == "/a" else Answer()
        )
        await send(client, web.url("/a"), "POST", {"Content-Type": "text/plain"}, b"data")

        assert (web.received[1].method, web.received[1].body) == (method, body)
        assert ("content-type" in web.received[1].headers) == (method == "POST")
