"""Login to and logout from a server.

A logout always takes effect here, and at once: the tokens are deleted before the authorization server is asked to
revoke them, where it offers that. The result says whether it did.
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
from toolreeve.upstream.oauth.authorization import FAILURES, LOGIN_SECONDS, new_authorization
from toolreeve.upstream.oauth.endpoint import OAuthEndpoint
from toolreeve.upstream.oauth.settings import OAuthSettings
from toolreeve.upstream.oauth.token_file import Grant, TokenFile
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.connect import Authorize
from toolreeve.upstream.transports.http_client import HttpClient, explain, transport_over
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable

TOKEN_KINDS = ("refresh_token", "access_token")


@dataclass(frozen=True, slots=True, kw_only=True)
class LogoutResult:
    """`held`: there was a login; `revoked`: the server revoked its tokens; `why` it did not."""

    held: bool
    revoked: bool = False
    why: str = ""


async def login(
    spec: ServerSpec, *, http: GuardedHttp, state: Path, authorize: Authorize, timeout: float = LOGIN_SECONDS
) -> bool:
    """Log in anew. False where the server requires no login. Raises ServerUnavailable."""
    client = HttpClient(spec.url or "", spec.headers, http=http)
    scrubber = Scrubber(spec.secret_values)
    authorization = new_authorization(spec, client, scrubber, state=state, authorize=authorize, fresh=True)
    if authorization is None:
        raise ServerUnavailable(f"{spec.name!r} has no login: its headers set Authorization")
    client.authorize(authorization)
    session = UpstreamSession(
        transport_over(client, spec.kind), client_info={"name": "toolreeve", "version": "login"}, scrubber=scrubber
    )
    try:
        await session.open(timeout=timeout)
        with suppress(RemoteError, TimeoutError):
            await session.request("tools/list", {}, timeout=timeout)
    except ServerUnavailable as problem:
        raise ServerUnavailable(scrubber.text(str(problem))) from None
    finally:
        await session.close()
    return authorization.granted


async def logout(spec: ServerSpec, *, http: GuardedHttp, state: Path) -> LogoutResult:
    """Delete the tokens, and have them revoked. Raises ServerUnavailable for an invalid URL, OSError where they cannot
    be deleted."""
    client = HttpClient(spec.url or "", spec.headers, http=http)
    try:
        file = TokenFile(state, server=spec.name, url=client.url)
        grant = await asyncio.to_thread(file.read)
        await asyncio.to_thread(file.delete)
        if not grant.get("tokens"):
            return LogoutResult(held=False)
        return await _revoke(spec, grant, client)
    finally:
        await client.close()


async def _revoke(spec: ServerSpec, grant: Grant, client: HttpClient) -> LogoutResult:
    metadata = grant.get("metadata")
    tokens = grant["tokens"]
    url = metadata.get("revocation_endpoint") if isinstance(metadata, dict) else None
    if not isinstance(url, str) or not isinstance(tokens, dict):
        return LogoutResult(held=True, why="its authorization server has no revocation endpoint")
    endpoint = OAuthEndpoint(client)
    try:
        settings = OAuthSettings.parse(spec.oauth, source=spec.source, server=spec.name)
        for kind in TOKEN_KINDS:
            if tokens.get(kind):
                request = _revocation(url, str(tokens[kind]), kind, _registered_client(grant, settings))
                response = await endpoint.send(request)
                response.raise_for_status()
    except (*FAILURES, ConfigError) as problem:
        return LogoutResult(held=True, why=explain(problem))
    finally:
        await endpoint.close()
    return LogoutResult(held=True, revoked=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RegisteredClient:
    id: str
    secret: str
    method: str


def _registered_client(grant: Grant, settings: OAuthSettings) -> _RegisteredClient:
    """The OAuth client that the tokens were granted to."""
    if settings.client_id is not None:
        method = settings.token_endpoint_auth_method or "client_secret_basic"
        return _RegisteredClient(id=settings.client_id, secret=settings.client_secret or "", method=method)
    stored = grant.get("client")
    fields = stored if isinstance(stored, dict) else {}
    return _RegisteredClient(
        id=str(fields.get("client_id") or ""),
        secret=str(fields.get("client_secret") or ""),
        method=str(fields.get("token_endpoint_auth_method") or "client_secret_basic"),
    )


def _revocation(url: str, token: str, kind: str, client: _RegisteredClient) -> httpx2.Request:
    form = {"token": token, "token_type_hint": kind}
    headers = {"accept": "application/json"}
    if client.secret and client.method == "client_secret_basic":
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = client.id
        if client.secret and client.method != "none":
            form["client_secret"] = client.secret
    return httpx2.Request("POST", url, data=form, headers=headers)
