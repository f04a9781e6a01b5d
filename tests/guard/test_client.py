import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network import Answer, Received, dns_server, listening, web_server
from toolreeve.core.errors import ConfigError, ErrorCode, ToolError
from toolreeve.core.http import HttpReply, HttpRequest
from toolreeve.guard.client import GuardedHttp
from toolreeve.guard.network import NetworkGuard, NetworkSettings
from toolreeve.guard.resolver import HostsResolver, Resolver, parse_hosts


@asynccontextmanager
async def http(
    *allow: str, resolver: Resolver | None = None, deny: Sequence[str] = (), max_body: int = 100_000
) -> AsyncIterator[GuardedHttp]:
    given = NetworkSettings(allow=allow, deny=tuple(deny), max_body=max_body)
    client = GuardedHttp(NetworkGuard(given, resolver or HostsResolver({})), now=time.time)
    try:
        yield client
    finally:
        await client.close()


async def send(
    client: GuardedHttp,
    url: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 5.0,
    session: str = "s",
) -> HttpReply:
    request = HttpRequest(method=method, url=url, headers=headers or {}, body=body, timeout=timeout, session=session)
    return await client.send(request)


async def failure(client: GuardedHttp, url: str, timeout: float = 5.0) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await send(client, url, timeout=timeout)
    return caught.value


def redirects(to: Callable[[Received], str], status: int = 302) -> Callable[[Received], Answer]:
    return lambda request: Answer(status=status, headers={"location": to(request)})


async def test_a_request_arrives_as_it_was_meant() -> None:
    async with (
        web_server(lambda _: Answer(status=201, headers={"X-Seen": "yes"})) as web,
        http(f"127.0.0.1:{web.port}") as client,
    ):
        reply = await send(client, web.url("/a b?c=d#e"), "POST", {"X-Key": "1"}, b"hello")

        assert (reply.status, reply.body, reply.headers["x-seen"]) == (201, b"ok", "yes")
        got = web.received[0]
        assert (got.method, got.path, got.body) == ("POST", "/a%20b?c=d", b"hello")
        assert got.headers["host"] == f"127.0.0.1:{web.port}"
        assert got.headers["x-key"] == "1"
        assert got.headers["user-agent"] == "Toolreeve"


async def test_connections_are_pooled() -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        for _ in range(5):
            await send(client, web.url())

        assert (len(web.received), web.connections) == (5, 1)


async def test_the_name_stays_in_the_host_header_while_the_judged_address_is_dialled() -> None:
    async with (
        web_server() as web,
        http(f"127.0.0.1:{web.port}", resolver=HostsResolver(parse_hosts("127.0.0.1 name.example"))) as client,
    ):
        await send(client, web.url(host="name.example"))

        assert web.received[0].headers["host"] == f"name.example:{web.port}"


async def test_a_name_that_rebinds_between_two_requests_is_judged_for_each_connection() -> None:
    async with (
        web_server(lambda _: Answer(headers={"connection": "close"})) as good,
        dns_server({"rebind.example": [["127.0.0.1"], ["127.0.0.2"]]}) as (dns, resolver),
        http(f"127.0.0.1:{good.port}", resolver=resolver) as client,
    ):
        assert (await send(client, good.url(host="rebind.example"))).status == 200
        refused = await failure(client, good.url(host="rebind.example"))

        assert refused.code is ErrorCode.URL_FORBIDDEN
        assert "127.0.0.2" in refused.message
        assert len(dns.asked) == 2


async def test_one_forbidden_record_among_good_ones_refuses_the_name() -> None:
    async with (
        web_server() as web,
        dns_server({"mixed.example": [["127.0.0.1", "10.0.0.1"]], "six.example": [["127.0.0.1", "::1"]]}) as (
            _,
            resolver,
        ),
        http(f"127.0.0.1:{web.port}", resolver=resolver) as client,
    ):
        for name in ("mixed.example", "six.example"):
            assert (await failure(client, web.url(host=name))).code is ErrorCode.URL_FORBIDDEN
        assert web.connections == 0


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


async def test_a_body_beyond_the_cap_is_cut_while_it_streams() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    async with listening(endless) as port, http(f"127.0.0.1:{port}") as client:
        reply = await send(client, f"http://127.0.0.1:{port}/")

        assert (len(reply.body), reply.truncated) == (100_000, True)


async def test_a_compressed_bomb_is_cut_after_unpacking() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    async with (
        web_server(lambda _: Answer(body=bomb, headers={"content-encoding": "gzip"})) as web,
        http(f"127.0.0.1:{web.port}") as client,
    ):
        reply = await send(client, web.url())

        assert (len(reply.body), reply.truncated) == (100_000, True)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nx"])
async def test_a_server_that_dawdles_meets_the_deadline(said: bytes) -> None:
    async def dawdle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await reader.read()
        await asyncio.Event().wait()

    async with listening(dawdle) as port, http(f"127.0.0.1:{port}") as client:
        assert (await failure(client, f"http://127.0.0.1:{port}/", timeout=0.2)).code is ErrorCode.HTTP_TIMEOUT


async def test_a_slow_drip_meets_the_deadline_although_each_byte_comes_in_time() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    async with listening(drip) as port, http(f"127.0.0.1:{port}") as client:
        assert (await failure(client, f"http://127.0.0.1:{port}/", timeout=0.2)).code is ErrorCode.HTTP_TIMEOUT


@pytest.mark.parametrize(
    "said",
    [
        b"nonsense\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000,
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nnope",
    ],
)
async def test_a_server_that_speaks_nonsense_is_an_http_error(said: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()

    async with listening(speak) as port, http(f"127.0.0.1:{port}") as client:
        assert (await failure(client, f"http://127.0.0.1:{port}/")).code is ErrorCode.HTTP_ERROR


async def test_nobody_listening_is_an_http_error() -> None:
    async with web_server() as web:
        url = web.url()
    async with http(f"127.0.0.1:{web.port}") as client:
        assert (await failure(client, url)).code is ErrorCode.HTTP_ERROR


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "internal"},
        {"Transfer-Encoding": "chunked"},
        {"Content-Length": "5"},
        {"Connection": "upgrade"},
        {"X": "a\r\nHost: internal"},
        {"X": "a\nb"},
        {"X Y": "a"},
        {"X\r\nY": "a"},
        {":authority": "internal"},
        {"X": "\0"},
        {"X": "☃"},
        {"": "a"},
    ],
)
async def test_headers_cannot_redirect_or_reframe_a_request(headers: Mapping[str, str]) -> None:
    async with web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        with pytest.raises(ToolError) as caught:
            await send(client, web.url(), headers=headers)

        assert caught.value.code is ErrorCode.INVALID_PARAMS
        assert web.connections == 0


async def test_cookies_stay_in_their_session() -> None:
    async with (
        web_server(lambda _: Answer(cookies=["id=1; Path=/", "b=2; Path=/"])) as web,
        http(f"127.0.0.1:{web.port}") as client,
    ):
        for session in ("one", "one", "two"):
            await send(client, web.url(), session=session)
        client.forget("one")
        await send(client, web.url(), session="one")

        assert [request.headers.get("cookie") for request in web.received] == [None, "id=1; b=2", None, None]


async def test_a_connection_let_through_for_one_method_carries_no_other() -> None:
    async with (
        web_server() as web,
        http(
            f"GET 127.0.0.0/8:{web.port}",
            f"POST 127.0.0.2:{web.port}",
            resolver=HostsResolver(parse_hosts("127.0.0.1 name.example")),
        ) as client,
    ):
        await send(client, web.url(host="name.example"))
        with pytest.raises(ToolError) as caught:
            await send(client, web.url(host="name.example"), "POST", body=b"x")

        assert caught.value.code is ErrorCode.URL_FORBIDDEN
        assert [request.method for request in web.received] == ["GET"]


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with web_server() as proxy, web_server() as web, http(f"127.0.0.1:{web.port}") as client:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url())
        await send(client, web.url())
        async with client.library_client() as library:
            await library.get(web.url())

        assert (len(web.received), proxy.connections) == (2, 0)


async def test_a_configured_proxy_is_used_and_what_goes_through_it_is_judged_all_the_same() -> None:
    hosts = HostsResolver(parse_hosts("127.0.0.1 open.example\n10.0.0.1 private.example"))
    async with web_server(lambda request: Answer(body=request.path.encode())) as proxy:
        given = NetworkSettings(allow=("*", "127.0.0.1:80"), proxy=proxy.url().replace("//", "//user:word@"))
        client = GuardedHttp(NetworkGuard(given, hosts), now=time.time)

        reply = await send(client, "http://open.example/x")
        refused = await failure(client, "http://private.example/")
        await client.close()

        assert reply.body == b"http://open.example:80/x"
        assert refused.code is ErrorCode.URL_FORBIDDEN
        assert [got.headers["proxy-authorization"] for got in proxy.received] == ["Basic dXNlcjp3b3Jk"]


@pytest.mark.parametrize("url", ["", "proxy.example:3128", "socks4://x", "http://", "http://a b/", "http://x/path"])
def test_what_is_no_proxy_is_told_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match=r"network\.proxy"):
        NetworkGuard(NetworkSettings(proxy=url))


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
        denying = GuardedHttp(NetworkGuard(NetworkSettings(deny=("127.0.0.0/8",))), now=time.time)
        for url in (server.url(), "http://169.254.169.254/mcp", "http://2852039166/mcp"):
            async with httpx2.AsyncClient(transport=denying.library_transport(configured=url)) as own:
                with pytest.raises(ToolError) as caught:
                    await own.get(url)
                assert caught.value.code is ErrorCode.URL_FORBIDDEN
        assert server.connections == 0


async def test_cancelling_a_request_gives_its_connection_up() -> None:
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()
        gone.set()

    async with listening(hang) as port, http(f"127.0.0.1:{port}") as client:
        task = asyncio.create_task(send(client, f"http://127.0.0.1:{port}/"))
        await asyncio.wait_for(arrived.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(gone.wait(), 5)


_hosts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [
            "127.0.0.2",
            "0x7f.2",
            "2130706434",
            "[::1]",
            "[::ffff:7f00:2]",
            "localhost",
            "127.0.0.1@127.0.0.2",
            "①②⑦.0.0.2",
        ]
    ),
    st.integers(0, 2**32).map(str),
)


@settings(max_examples=60, deadline=None)
@given(host=_hosts, prefix=st.sampled_from(["http://", "http://x@", "http:", "//", "http://127.0.0.1\\@", "HTTP://"]))
async def test_no_url_leads_to_a_connection_that_no_rule_allows(host: str, prefix: str) -> None:
    async with web_server(host="127.0.0.2") as secret, http("127.0.0.1:1") as client:
        for url in (f"{prefix}{host}:{secret.port}/", f"{prefix}{host}"):
            with pytest.raises(ToolError):
                await send(client, url)
        assert secret.connections == 0
