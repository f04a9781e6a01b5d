"""A configured proxy is used, and what goes through it is checked all the same."""

import pytest

from tests.guard.network.client.client import failure, http, send
from tests.network import Answer, web_server
from toolreeve.core.errors import ConfigError, ErrorCode
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import HostsResolver, parse_hosts


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
        client = GuardedHttp(NetworkGuard(given, hosts))

        reply = await send(client, "http://open.example/x")
        refused = await failure(client, "http://private.example/")
        await client.close()

        assert reply.body == b"http://open.example:80/x"
        assert refused.code is ErrorCode.URL_FORBIDDEN
        assert [got.headers["proxy-authorization"] for got in proxy.received] == ["Basic dXNlcjp3b3Jk"]


@pytest.mark.parametrize("url", ["", "proxy.example:3128", "socks4://x", "http://", "http://a b/", "http://x/path"])
def test_an_invalid_proxy_is_reported_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match=r"network\.proxy"):
        NetworkGuard(NetworkSettings(proxy=url))
