"""How does a user log in to a server, and out again?

Logging out always holds here, and at once: what was granted is deleted before anybody else is told. The authorization
server is told where it takes that, and what became of it is said.
"""

import asyncio
import base64
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx2

from toolreeve.core.errors import ConfigError
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.upstream.oauth.authorization import FAILURES, LOGIN_SECONDS, Authorize, new_authorization
from toolreeve.upstream.oauth.endpoint import OAuthEndpoint
from toolreeve.upstream.oauth.settings import OAuthSettings
from toolreeve.upstream.oauth.token_file import Grant, TokenFile
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.http_client import HttpClient, explain, line_over
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable

RENEWS, LETS_IN = "refresh_token", "access_token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Farewell:
    """What became of a login: whether there was one, whether the server took it back, and if not, why."""

    held: bool
    revoked: bool = False
    why: str = ""


async def login(
    spec: ServerSpec, *, http: GuardedHttp, state: Path, authorize: Authorize, timeout: float = LOGIN_SECONDS
) -> bool:
    """Log in anew. False where the server asked for nothing. Raises ServerAway with what stood in the way."""
    web = HttpClient(spec.url or "", spec.headers, http=http)
    veil = Scrubber(spec.secret_values)
    authorization = new_authorization(spec, web, veil, state=state, authorize=authorize, fresh=True)
    if authorization is None:
        raise ServerUnavailable(
            f"{spec.name!r} is given an Authorization header by its configuration: there is no login"
        )
    web.authorize(authorization)
    session = UpstreamSession(
        line_over(web, spec.kind), client_info={"name": "toolreeve", "version": "login"}, veil=veil
    )
    try:
        await session.open(timeout=timeout)
        with suppress(RemoteError, TimeoutError):
            await session.request("tools/list", {}, timeout=timeout)
    except ServerUnavailable as problem:
        raise ServerUnavailable(veil.text(str(problem))) from None
    finally:
        await session.close()
    return authorization.granted


async def logout(spec: ServerSpec, *, http: GuardedHttp, state: Path) -> Farewell:
    """Delete what was granted, and have it revoked. Raises ServerAway for a server without a place, OSError where it
    cannot be deleted."""
    web = HttpClient(spec.url or "", spec.headers, http=http)
    try:
        file = TokenFile(state, server=spec.name, url=web.url)
        grant = await asyncio.to_thread(file.read)
        await asyncio.to_thread(file.delete)
        return await _revoked(spec, grant, web) if grant.get("tokens") else Farewell(held=False)
    finally:
        await web.close()


async def _revoked(spec: ServerSpec, grant: Grant, web: HttpClient) -> Farewell:
    metadata, tokens = grant.get("metadata"), grant["tokens"]
    place = metadata.get("revocation_endpoint") if isinstance(metadata, dict) else None
    if not isinstance(place, str) or not isinstance(tokens, dict):
        return Farewell(held=True, why="its authorization server does not say where tokens are revoked")
    exchange = OAuthEndpoint(web)
    try:
        settings = OAuthSettings.parse(spec.oauth, source=spec.source, server=spec.name)
        for kind in (RENEWS, LETS_IN):
            if tokens.get(kind):
                answer = await exchange.send(_revocation(place, str(tokens[kind]), kind, _client(grant, settings)))
                answer.raise_for_status()
    except (*FAILURES, ConfigError) as problem:
        return Farewell(held=True, why=explain(problem))
    finally:
        await exchange.close()
    return Farewell(held=True, revoked=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    id: str
    secret: str
    method: str


def _client(grant: Grant, settings: OAuthSettings) -> _Client:
    """Whoever the tokens were granted to."""
    if settings.client_id is not None:
        method = settings.token_endpoint_auth_method or "client_secret_basic"
        return _Client(id=settings.client_id, secret=settings.client_secret or "", method=method)
    kept = grant.get("client")
    told = kept if isinstance(kept, dict) else {}
    return _Client(
        id=str(told.get("client_id") or ""),
        secret=str(told.get("client_secret") or ""),
        method=str(told.get("token_endpoint_auth_method") or "client_secret_basic"),
    )


def _revocation(place: str, token: str, kind: str, client: _Client) -> httpx2.Request:
    form = {"token": token, "token_type_hint": kind}
    headers = {"accept": "application/json"}
    if client.secret and client.method == "client_secret_basic":
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = client.id
        if client.secret and client.method != "none":
            form["client_secret"] = client.secret
    return httpx2.Request("POST", place, data=form, headers=headers)
