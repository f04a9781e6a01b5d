"""Logging in to servers: a real authorization server on loopback, a browser that follows links, and those who cheat."""

import asyncio
import logging
import stat
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from tests.upstream.http_servers import guarded, open_session, served, spec_of, transport_to
from tests.upstream.oauth_server import Browser, OAuthServer
from toolreeve.core import json
from toolreeve.core.mcp import Era
from toolreeve.upstream.oauth.account import login
from toolreeve.upstream.oauth.token_file import TokenFile
from toolreeve.upstream.transports.transport import ServerUnavailable


class Place:
    """A oauth_server that is served, and the state in which logins are kept."""

    def __init__(self, oauth_server: OAuthServer, origin: str, state: Path) -> None:
        self.oauth_server, self.origin, self.state = oauth_server, origin, state
        self.url = f"{origin}/mcp"

    async def log_in(self, browser: Any, *allow: str, **more: Any) -> bool:
        return await login(spec_of(self.url, **more), http=guarded(*allow), state=self.state, authorize=browser)

    async def call(self, **more: Any) -> dict[str, Any]:
        async with open_session(transport_to(self.url, self.state, **more), Era.LEGACY) as session:
            return await session.request("tools/list", {})

    @property
    def file(self) -> TokenFile:
        return TokenFile(self.state, server="web", url=self.url)


@asynccontextmanager
async def placed(state: Path, **more: Any) -> AsyncIterator[Place]:
    oauth_server = OAuthServer(**more)
    async with served(oauth_server.application()) as origin:
        yield Place(oauth_server, origin, state)


async def test_a_login_is_kept_for_the_user_alone_and_used_from_then_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    browser = Browser()
    async with placed(tmp_path / "state") as place:
        assert await place.log_in(browser) is True
        assert await place.call() == {"tools": []}

        kept = place.file.path
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert len(browser.urls) == len(place.oauth_server.authorized) == 1
    assert "You can close this window" in browser.pages[0]
    printed = "".join(capfd.readouterr())
    assert "secret-" not in caplog.text + printed


async def test_a_login_proves_itself_and_says_what_it_is_for(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())

        (asked,) = place.oauth_server.authorized
        (exchanged,) = place.oauth_server.exchanged
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == exchanged["resource"] == place.url
        assert asked["redirect_uri"].startswith("http://127.0.0.1:")
        assert asked["scope"] == "tools"


async def test_without_a_person_the_server_is_unavailable_and_no_login_starts(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        with pytest.raises(ServerUnavailable, match="run `toolreeve servers login web`"):
            await place.call()

        assert place.oauth_server.registered == place.oauth_server.authorized == []


async def test_a_server_that_asks_for_nothing_needs_no_login(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        place.oauth_server.valid.add("given")
        with pytest.raises(ServerUnavailable, match="has no login"):
            await place.log_in(Browser(), headers={"authorization": "Bearer given"})
        assert await place.call(headers={"Authorization": "Bearer given"}) == {"tools": []}


async def test_a_header_of_the_users_own_that_is_refused_begins_no_login(tmp_path: Path) -> None:
    browser = Browser()
    async with placed(tmp_path) as place:
        with pytest.raises(ServerUnavailable, match="rejects our authorization"):
            await place.call(headers={"Authorization": "Bearer old"}, authorize=browser)
    assert browser.urls == []


async def test_a_token_that_has_run_out_is_renewed_without_asking(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        first = place.file.read()["tokens"]
        place.file.update(expires_at=time.time() - 1)

        assert await place.call() == {"tools": []}
        second = place.file.read()["tokens"]

    assert first["access_token"] != second["access_token"]
    assert first["refresh_token"] != second["refresh_token"]
    assert place.oauth_server.exchanged[-1]["grant_type"] == "refresh_token"
    assert place.oauth_server.shown[-1] == f"Bearer {second['access_token']}"


async def test_a_token_that_is_refused_before_its_time_is_renewed_too(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        place.oauth_server.valid.clear()

        assert await place.call() == {"tools": []}


async def test_a_renewal_that_is_refused_needs_a_new_login(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        place.oauth_server.valid.clear()
        place.oauth_server.renews = False

        with pytest.raises(ServerUnavailable, match="servers login web"):
            await place.call()
        browser = Browser()
        assert await place.call(authorize=browser) == {"tools": []}
        assert len(browser.urls) == 1


async def test_many_calls_wait_for_one_login(tmp_path: Path) -> None:
    browser = Browser()
    async with (
        placed(tmp_path) as place,
        open_session(transport_to(place.url, tmp_path, authorize=browser), Era.LEGACY) as session,
    ):
        place.oauth_server.valid.clear()
        place.oauth_server.renews = False
        answers = await asyncio.gather(*(session.request("tools/list", {}) for _ in range(10)))

    assert answers == [{"tools": []}] * 10
    assert len(browser.urls) == 2


async def test_a_token_is_not_shown_to_a_server_of_the_same_name_elsewhere(tmp_path: Path) -> None:
    async with placed(tmp_path) as place, placed(tmp_path) as other:
        await place.log_in(Browser())

        with pytest.raises(ServerUnavailable, match="servers login"):
            await other.call()
        assert set(other.oauth_server.shown) == {None}


async def test_a_refused_login_is_reported(tmp_path: Path) -> None:
    async with placed(tmp_path, refuses=True) as place:
        with pytest.raises(ServerUnavailable, match="the person said no"):
            await place.log_in(Browser())
        assert len(place.oauth_server.authorized) == 1


async def test_a_callback_with_another_state_is_refused(tmp_path: Path) -> None:
    async def tampered(url: str) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        async with httpx2.AsyncClient(trust_env=False) as client:
            for state in ("", "guess", asked["state"] + "x"):
                answer = await client.get(asked["redirect_uri"], params={"code": "stolen", "state": state})
                assert answer.status_code == 400
            assert (await client.get(asked["redirect_uri"].replace("/callback", "/"))).status_code == 404
            assert (await client.post(asked["redirect_uri"], params={"state": asked["state"]})).status_code == 404
        await Browser()(url)

    async with placed(tmp_path) as place:
        assert await place.log_in(tampered) is True
        assert [each["code"] for each in place.oauth_server.exchanged] != ["stolen"]


async def test_a_login_that_nobody_finishes_ends_and_its_port_is_closed(tmp_path: Path) -> None:
    shown: list[str] = []

    async def look_away(url: str) -> None:
        shown.append(url)

    async with placed(tmp_path) as place:
        spec = spec_of(place.url)
        with pytest.raises(ServerUnavailable, match="did not respond within 1 s"):
            await login(spec, http=guarded(), state=tmp_path, authorize=look_away, timeout=1)
        uri = parse_qs(urlsplit(shown[0]).query)["redirect_uri"][0]
        with pytest.raises(OSError, match=r"refused|Connect"):
            await asyncio.open_connection("127.0.0.1", urlsplit(uri).port)


async def test_an_authorization_server_elsewhere_must_be_in_reach(tmp_path: Path) -> None:
    browser = Browser()
    async with placed(tmp_path) as authority, placed(tmp_path, authority=authority.origin) as place:
        with pytest.raises(ServerUnavailable, match="the login failed"):
            await place.log_in(browser)
        assert (browser.urls, authority.oauth_server.registered) == ([], [])

        place.oauth_server.valid = authority.oauth_server.valid
        assert await place.log_in(browser, "*", "127.0.0.0/8:*") is True
        assert len(authority.oauth_server.authorized) == 1


@pytest.mark.parametrize(
    "endpoint", ["http://evil.example/authorize", "http://169.254.169.254/latest", "http://10.0.0.1:8080/authorize"]
)
async def test_a_browser_is_sent_nowhere_that_is_not_encrypted_or_not_in_reach(endpoint: str, tmp_path: Path) -> None:
    browser = Browser()
    async with placed(tmp_path, metadata={"authorization_endpoint": endpoint}) as place:
        with pytest.raises(ServerUnavailable, match="the login failed"):
            await place.log_in(browser)
    assert browser.urls == []


async def test_a_code_is_sent_to_no_token_endpoint_that_is_not_encrypted(tmp_path: Path) -> None:
    async with placed(tmp_path, metadata={"token_endpoint": "http://evil.example/token"}) as place:
        with pytest.raises(ServerUnavailable, match="sent unencrypted"):
            await place.log_in(Browser())


async def test_a_registered_client_is_used_and_its_secret_shown_to_its_own_issuer(tmp_path: Path) -> None:
    oauth = {"client_id": "ours", "client_secret": "hush", "scopes": ["extra"]}
    async with placed(tmp_path) as place:
        await place.log_in(Browser(), oauth=oauth)

        assert place.oauth_server.registered == []
        assert place.oauth_server.authorized[0]["client_id"] == "ours"
        assert place.oauth_server.authorized[0]["scope"] == "extra tools"
        assert place.oauth_server.exchanged[0]["authorization"].startswith("Basic ")


@pytest.mark.parametrize("told", ["by the user", "by the first login"])
async def test_a_registered_client_is_shown_to_no_other_issuer(told: str, tmp_path: Path) -> None:
    oauth = {"client_id": "ours", "client_secret": "hush"}
    async with placed(tmp_path) as evil, placed(tmp_path) as place:
        if told == "by the user":
            oauth["issuer"] = place.origin
        else:
            await place.log_in(Browser(), oauth=oauth)
        place.oauth_server.valid.clear()
        place.oauth_server.authority = evil.origin

        with pytest.raises(ServerUnavailable, match="the configured client"):
            await place.log_in(Browser(), "*", "127.0.0.0/8:*", oauth=oauth)
        assert evil.oauth_server.authorized == evil.oauth_server.exchanged == evil.oauth_server.registered == []


async def test_a_machine_logs_in_by_itself_with_its_own_credentials(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        oauth = {
            "client_id": "ours",
            "client_secret": "hush",
            "grant": "client_credentials",
            "issuer": place.origin,
        }
        assert await place.call(oauth=oauth) == {"tools": []}
        assert place.oauth_server.authorized == []


async def test_the_port_of_the_first_login_is_used_again(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        await place.log_in(Browser())

        first, second = (asked["redirect_uri"] for asked in place.oauth_server.authorized)
        assert first == second
        assert len(place.oauth_server.registered) == 1


async def test_where_the_port_of_the_first_login_is_taken_the_client_is_a_new_one(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        port = urlsplit(place.oauth_server.authorized[0]["redirect_uri"]).port
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
        async with server:
            await place.log_in(Browser())

        assert len(place.oauth_server.registered) == 2
        assert urlsplit(place.oauth_server.authorized[1]["redirect_uri"]).port != port


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tokens": "no", "url": 3}', b"x" * (2 << 20)])
async def test_an_invalid_token_file_counts_as_empty(content: bytes, tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        place.file.path.parent.mkdir()
        place.file.path.write_bytes(content)
        with pytest.raises(ServerUnavailable, match="servers login"):
            await place.call()


@pytest.mark.parametrize("tokens", ["no", [], {"access_token": 5}, {"access_token": "a\r\nb", "refresh_token": 7}])
async def test_invalid_tokens_lead_to_a_login_error(tokens: Any, tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        place.file.path.parent.mkdir()
        place.file.path.write_bytes(json.dumps({"url": place.url, "tokens": tokens, "expires_at": 5}))
        with pytest.raises(ServerUnavailable):
            await place.call()
