"""Logging out: what was granted is gone here at once, and revoked where that can be done."""

from pathlib import Path
from typing import Any

import pytest

from tests.upstream.http_servers import guarded, open_session, spec_of, transport_to
from tests.upstream.oauth.test_authorization import Place, placed
from tests.upstream.oauth_server import Browser
from toolreeve.core.mcp import Era
from toolreeve.upstream.oauth.account import LogoutResult, logout
from toolreeve.upstream.oauth.token_file import TokenFile
from toolreeve.upstream.transports.transport import ServerUnavailable


async def log_out(place: Place, *allow: str, **more: Any) -> LogoutResult:
    return await logout(spec_of(place.url, **more), http=guarded(*allow), state=place.state)


def revocable(place: Place) -> None:
    place.oauth_server.metadata = {"revocation_endpoint": f"{place.origin}/revoke"}


async def test_tokens_are_revoked_and_deleted(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        revocable(place)
        await place.log_in(Browser())
        tokens = place.file.read()["tokens"]

        left = await log_out(place)

        assert left == LogoutResult(held=True, revoked=True)
        assert not place.file.path.exists()
        assert [(each["token"], each["token_type_hint"]) for each in place.oauth_server.revoked] == [
            (tokens["refresh_token"], "refresh_token"),
            (tokens["access_token"], "access_token"),
        ]
        assert {each["client_id"] for each in place.oauth_server.revoked} == {"client-1"}
        with pytest.raises(ServerUnavailable, match="servers login web"):
            await place.call()


async def test_a_client_with_a_secret_proves_who_it_is(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        revocable(place)
        oauth = {"client_id": "known", "client_secret": "s e", "issuer": place.origin}
        await place.log_in(Browser(), oauth=oauth)

        await log_out(place, oauth=oauth)

        assert {each["authorization"] for each in place.oauth_server.revoked} == {"Basic a25vd246cyUyMGU="}
        assert not any("client_secret" in each for each in place.oauth_server.revoked)


async def test_without_a_revocation_endpoint_tokens_are_deleted_and_the_result_says_so(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())

        left = await log_out(place)

        assert (left.held, left.revoked) == (True, False)
        assert "has no revocation endpoint" in left.why
        assert not place.file.path.exists()


@pytest.mark.parametrize("place_told", ["/revoke", "http://tokens.example.invalid/revoke"])
async def test_a_failed_revocation_is_reported_and_the_tokens_stay_deleted(tmp_path: Path, place_told: str) -> None:
    async with placed(tmp_path) as place:
        endpoint = place_told if "://" in place_told else place.origin + place_told
        place.oauth_server.metadata = {"revocation_endpoint": endpoint}
        place.oauth_server.revokes = False
        await place.log_in(Browser())

        left = await log_out(place)

        assert (left.held, left.revoked) == (True, False)
        assert left.why
        assert not place.file.path.exists()


async def test_without_a_login_there_is_nothing_to_leave(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        assert await log_out(place) == LogoutResult(held=False)


async def test_tokens_of_another_place_are_deleted_and_sent_nowhere(tmp_path: Path) -> None:
    async with placed(tmp_path) as place, placed(tmp_path) as other:
        revocable(place)
        await place.log_in(Browser())

        assert await log_out(other) == LogoutResult(held=False)
        assert not TokenFile(tmp_path, server="web", url=place.url).exists()
        assert place.oauth_server.revoked == other.oauth_server.revoked == []


async def test_an_open_session_is_logged_out_too(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        async with open_session(transport_to(place.url, tmp_path), Era.LEGACY) as session:
            await session.request("tools/list", {})
            await log_out(place)

            with pytest.raises(ServerUnavailable, match="servers login web"):
                await session.request("tools/list", {})
        assert place.oauth_server.shown[-1] is None
