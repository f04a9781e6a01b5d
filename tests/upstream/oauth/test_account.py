"""Logging out: what was granted is gone here at once, and revoked where that can be done."""

from pathlib import Path
from typing import Any

import pytest

from tests.upstream.gatehouse import Browser
from tests.upstream.oauth.test_authorization import Place, placed
from tests.upstream.webs import conversation, guarded, line_to, spec_of
from toolreeve.core.mcp import Era
from toolreeve.upstream.oauth.account import Farewell, logout
from toolreeve.upstream.oauth.token_file import TokenFile
from toolreeve.upstream.transports.transport import ServerUnavailable


async def log_out(place: Place, *allow: str, **more: Any) -> Farewell:
    return await logout(spec_of(place.url, **more), http=guarded(*allow), state=place.state)


def revocable(place: Place) -> None:
    place.gatehouse.metadata = {"revocation_endpoint": f"{place.origin}/revoke"}


async def test_tokens_are_revoked_and_deleted(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        revocable(place)
        await place.log_in(Browser())
        tokens = place.file.read()["tokens"]

        left = await log_out(place)

        assert left == Farewell(held=True, revoked=True)
        assert not place.file.path.exists()
        assert [(each["token"], each["token_type_hint"]) for each in place.gatehouse.revoked] == [
            (tokens["refresh_token"], "refresh_token"),
            (tokens["access_token"], "access_token"),
        ]
        assert {each["client_id"] for each in place.gatehouse.revoked} == {"client-1"}
        with pytest.raises(ServerUnavailable, match="servers login web"):
            await place.call()


async def test_a_client_with_a_secret_proves_who_it_is(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        revocable(place)
        oauth = {"client_id": "known", "client_secret": "s e", "issuer": place.origin}
        await place.log_in(Browser(), oauth=oauth)

        await log_out(place, oauth=oauth)

        assert {each["authorization"] for each in place.gatehouse.revoked} == {"Basic a25vd246cyUyMGU="}
        assert not any("client_secret" in each for each in place.gatehouse.revoked)


async def test_where_nothing_can_be_revoked_it_is_deleted_and_said(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())

        left = await log_out(place)

        assert (left.held, left.revoked) == (True, False)
        assert "does not say where tokens are revoked" in left.why
        assert not place.file.path.exists()


@pytest.mark.parametrize("place_told", ["/revoke", "http://tokens.example.invalid/revoke"])
async def test_a_revocation_that_fails_is_said_and_undoes_nothing(tmp_path: Path, place_told: str) -> None:
    async with placed(tmp_path) as place:
        endpoint = place_told if "://" in place_told else place.origin + place_told
        place.gatehouse.metadata = {"revocation_endpoint": endpoint}
        place.gatehouse.revokes = False
        await place.log_in(Browser())

        left = await log_out(place)

        assert (left.held, left.revoked) == (True, False)
        assert left.why
        assert not place.file.path.exists()


async def test_without_a_login_there_is_nothing_to_leave(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        assert await log_out(place) == Farewell(held=False)


async def test_tokens_of_another_place_are_deleted_and_sent_nowhere(tmp_path: Path) -> None:
    async with placed(tmp_path) as place, placed(tmp_path) as other:
        revocable(place)
        await place.log_in(Browser())

        assert await log_out(other) == Farewell(held=False)
        assert not TokenFile(tmp_path, server="web", url=place.url).exists()
        assert place.gatehouse.revoked == other.gatehouse.revoked == []


async def test_whoever_is_connected_meanwhile_is_logged_out_too(tmp_path: Path) -> None:
    async with placed(tmp_path) as place:
        await place.log_in(Browser())
        async with conversation(line_to(place.url, tmp_path), Era.LEGACY) as session:
            await session.request("tools/list", {})
            await log_out(place)

            with pytest.raises(ServerUnavailable, match="servers login web"):
                await session.request("tools/list", {})
        assert place.gatehouse.shown[-1] is None
