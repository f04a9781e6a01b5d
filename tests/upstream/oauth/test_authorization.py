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

from tests.upstream.gatehouse import Browser, Gatehouse
from tests.upstream.webs import conversation, guarded, line_to, served, spec_of
from toolreeve.core import json
from toolreeve.core.mcp import Era
from toolreeve.upstream.oauth.account import login
from toolreeve.upstream.oauth.token_file import TokenFile
from toolreeve.upstream.transports.transport import ServerUnavailable


class Place:
    """A gatehouse that is served, and the state in which logins are kept."""

    def __init__(self, gatehouse: Gatehouse, origin: str, state: Path) -> None:
        self.gatehouse, self.origin, self.state = gatehouse, origin, state
        self.url = f"{origin}/mcp"

    async def log_in(self, browser: Any, *allow: str, **more: Any) -> bool:
        return await login(spec_of(self.url, **more), http=guarded(*allow), state=self.state, authorize=browser)

    async def call(self, **more: Any) -> dict[str, Any]:
        async with conversation(line_to(self.url, self.state, **more), Era.LEGACY) as session:
            return await session.request("tools/list", {})

    @property
    def file(self) -> TokenFile:
        return TokenFile(self.state, server="web", url=self.url)


@asynccontextmanager
async def placed(state: Path, **more: Any) -> AsyncIterator[Place]:
    gatehouse = Gatehouse(**more)
    async with served(gatehouse.application()) as origin:
        yield Place(gatehouse, origin, state)


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
    assert len(browser.urls) == len(place.gatehouse.authorized) == 1
    assert "You can close this window" in browser.pages[0]
    printed = "".join(capfd.readouterr())
    assert "secret-" not in caplog.text + printed


async def test_a_login_proves_itself_and_says_what_it_is_for(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())

        (asked,) = place.gatehouse.authorized
        (exchanged,) = place.gatehouse.exchanged
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == exchanged["resource"] == place.url
        assert asked["redirect_uri"].startswith("http://127.0.0.1:")
        assert asked["scope"] == "tools"


async def test_without_anybody_there_the_server_is_away_and_nothing_is_begun(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        with pytest.raises(ServerUnavailable, match="run `toolreeve servers login web`"):
            await place.call()

        assert place.gatehouse.registered == place.gatehouse.authorized == []


async def test_a_server_that_asks_for_nothing_needs_no_login(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        place.gatehouse.valid.add("given")
        with pytest.raises(ServerUnavailable, match="there is no login"):
            await place.log_in(Browser(), headers={"authorization": "Bearer given"})
        assert await place.call(headers={"Authorization": "Bearer given"}) == {"tools": []}


async def test_a_header_of_the_users_own_that_is_refused_begins_no_login(tmp_path: Path) -> None:
    browser = Browser()
    async with placed(tmp_path) as place:
        with pytest.raises(ServerUnavailable, match="refuses what it was given"):
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
    assert place.gatehouse.exchanged[-1]["grant_type"] == "refresh_token"
    assert place.gatehouse.shown[-1] == f"Bearer {second['access_token']}"


async def test_a_token_that_is_refused_before_its_time_is_renewed_too(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        place.gatehouse.valid.clear()

        assert await place.call() == {"tools": []}


async def test_a_renewal_that_is_refused_needs_a_new_login(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        place.gatehouse.valid.clear()
        place.gatehouse.renews = False

        with pytest.raises(ServerUnavailable, match="servers login web"):
            await place.call()
        browser = Browser()
        assert await place.call(authorize=browser) == {"tools": []}
        assert len(browser.urls) == 1


async def test_many_calls_wait_for_one_login(tmp_path: Path) -> None:
    browser = Browser()
    async with (
        placed(tmp_path) as place,
        conversation(line_to(place.url, tmp_path, authorize=browser), Era.LEGACY) as session,
    ):
        place.gatehouse.valid.clear()
        place.gatehouse.renews = False
        answers = await asyncio.gather(*(session.request("tools/list", {}) for _ in range(10)))

    assert answers == [{"tools": []}] * 10
    assert len(browser.urls) == 2


async def test_a_token_is_not_shown_to_a_server_of_the_same_name_elsewhere(tmp_path: Path) -> None:
    async with placed(tmp_path) as place, placed(tmp_path) as other:
        await place.log_in(Browser())

        with pytest.raises(ServerUnavailable, match="servers login"):
            await other.call()
        assert set(other.gatehouse.shown) == {None}


async def test_a_refusal_of_the_person_is_told(tmp_path: Path) -> None:
    async with placed(tmp_path, refuses=True) as place:
        with pytest.raises(ServerUnavailable, match="the person said no"):
            await place.log_in(Browser())
        assert len(place.gatehouse.authorized) == 1


async def test_what_comes_back_with_another_state_is_not_believed(tmp_path: Path) -> None:
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
        assert [each["code"] for each in place.gatehouse.exchanged] != ["stolen"]


async def test_a_login_that_nobody_finishes_ends_and_its_port_is_closed(tmp_path: Path) -> None:
    shown: list[str] = []

    async def look_away(url: str) -> None:
        shown.append(url)

    async with placed(tmp_path) as place:
        spec = spec_of(place.url)
        with pytest.raises(ServerUnavailable, match="did not answer within 1 s"):
            await login(spec, http=guarded(), state=tmp_path, authorize=look_away, timeout=1)
        uri = parse_qs(urlsplit(shown[0]).query)["redirect_uri"][0]
        with pytest.raises(OSError, match=r"refused|Connect"):
            await asyncio.open_connection("127.0.0.1", urlsplit(uri).port)


async def test_an_authorization_server_elsewhere_must_be_in_reach(tmp_path: Path) -> None:
    browser = Browser()
    async with placed(tmp_path) as authority, placed(tmp_path, authority=authority.origin) as place:
        with pytest.raises(ServerUnavailable, match="the login failed"):
            await place.log_in(browser)
        assert (browser.urls, authority.gatehouse.registered) == ([], [])

        place.gatehouse.valid = authority.gatehouse.valid
        assert await place.log_in(browser, "*", "127.0.0.0/8:*") is True
        assert len(authority.gatehouse.authorized) == 1


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
        with pytest.raises(ServerUnavailable, match="not encrypted"):
            await place.log_in(Browser())


async def test_a_registered_client_is_used_and_its_secret_shown_to_its_own_issuer(tmp_path: Path) -> None:
    oauth = {"client_id": "ours", "client_secret": "hush", "scopes": ["extra"]}
    async with placed(tmp_path) as place:
        await place.log_in(Browser(), oauth=oauth)

        assert place.gatehouse.registered == []
        assert place.gatehouse.authorized[0]["client_id"] == "ours"
        assert place.gatehouse.authorized[0]["scope"] == "extra tools"
        assert place.gatehouse.exchanged[0]["authorization"].startswith("Basic ")


@pytest.mark.parametrize("told", ["by the user", "by the first login"])
async def test_a_registered_client_is_shown_to_no_other_issuer(told: str, tmp_path: Path) -> None:
    oauth = {"client_id": "ours", "client_secret": "hush"}
    async with placed(tmp_path) as evil, placed(tmp_path) as place:
        if told == "by the user":
            oauth["issuer"] = place.origin
        else:
            await place.log_in(Browser(), oauth=oauth)
        place.gatehouse.valid.clear()
        place.gatehouse.authority = evil.origin

        with pytest.raises(ServerUnavailable, match="the configured client"):
            await place.log_in(Browser(), "*", "127.0.0.0/8:*", oauth=oauth)
        assert evil.gatehouse.authorized == evil.gatehouse.exchanged == evil.gatehouse.registered == []


async def test_a_machine_logs_in_by_itself_with_its_own_credentials(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        oauth = {
            "client_id": "ours",
            "client_secret": "hush",
            "grant": "client_credentials",
            "issuer": place.origin,
        }
        assert await place.call(oauth=oauth) == {"tools": []}
        assert place.gatehouse.authorized == []


async def test_the_port_of_the_first_login_is_used_again(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        await place.log_in(Browser())

        first, second = (asked["redirect_uri"] for asked in place.gatehouse.authorized)
        assert first == second
        assert len(place.gatehouse.registered) == 1


async def test_where_the_port_of_the_first_login_is_taken_the_client_is_a_new_one(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        port = urlsplit(place.gatehouse.authorized[0]["redirect_uri"]).port
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
        async with server:
            await place.log_in(Browser())

        assert len(place.gatehouse.registered) == 2
        assert urlsplit(place.gatehouse.authorized[1]["redirect_uri"]).port != port


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tokens": "no", "url": 3}', b"x" * (2 << 20)])
async def test_a_file_of_tokens_that_is_none_counts_as_none(content: bytes, tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        place.file.path.parent.mkdir()
        place.file.path.write_bytes(content)
        with pytest.raises(ServerUnavailable, match="servers login"):
            await place.call()


@pytest.mark.parametrize("tokens", ["no", [], {"access_token": 5}, {"access_token": "a\r\nb", "refresh_token": 7}])
async def test_tokens_that_are_none_lead_to_an_error_that_says_so(tokens: Any, tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        place.file.path.parent.mkdir()
        place.file.path.write_bytes(json.dumps({"url": place.url, "tokens": tokens, "expires_at": 5}))
        with pytest.raises(ServerUnavailable):
            await place.call()
