"""Login to and logout from Google: the installed-app flow with PKCE.

The code is accepted only with the state that was sent out, and is worthless without the verifier that never left this
process. A logout deletes the tokens here before Google is asked to revoke them.
"""

import base64
import hashlib
import secrets as randomness
from collections.abc import Awaitable, Callable, Sequence

from toolreeve.connectors.catalogue import ServiceUrls
from toolreeve.connectors.google_account import (
    GoogleClient,
    GoogleGrant,
    Product,
    covers,
    post_form,
    scope_url,
    store_grant,
)
from toolreeve.core.context import SecretAccess
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.http import Http
from toolreeve.core.urls import encode_form
from toolreeve.upstream.oauth.callback import LoginCallback

ShowUrl = Callable[[str], Awaitable[None]]
_VERIFIER_BYTES = 48


def authorization_url(
    urls: ServiceUrls, client: GoogleClient, scopes: Sequence[str], *, redirect: str, state: str, verifier: str
) -> str:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect,
        "scope": " ".join(map(scope_url, scopes)),
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "access_type": "offline",
        "prompt": "consent",
    }
    return f"{urls.google_login}/o/oauth2/v2/auth?{encode_form(query).decode()}"


async def log_in(
    product: Product,
    scopes: Sequence[str],
    *,
    urls: ServiceUrls,
    callback: LoginCallback,
    show: ShowUrl,
    http: Http,
    secrets: SecretAccess,
    now: Callable[[], float],
) -> GoogleGrant:
    """Raises LoginFailed if the user refuses, ToolError if Google does."""
    client = await GoogleClient.find(secrets, urls)
    verifier = randomness.token_urlsafe(_VERIFIER_BYTES)
    state = randomness.token_urlsafe(24)
    url = authorization_url(urls, client, scopes, redirect=callback.uri, state=state, verifier=verifier)
    callback.expect(url)
    await show(url)
    outcome = await callback.outcome()
    form = {
        "grant_type": "authorization_code",
        "code": outcome.code,
        "code_verifier": verifier,
        "redirect_uri": callback.uri,
    }
    grant = client.grant(await client.request_token(http, form), now(), None, tuple(scopes))
    _check(grant, scopes)
    await store_grant(secrets, product, grant)
    return grant


def _check(grant: GoogleGrant, scopes: Sequence[str]) -> None:
    """On Google's page the user may grant less than was asked for."""
    if not grant.refresh_token:
        raise ToolError(ErrorCode.UPSTREAM, "Google issued no refresh token: the login would end within the hour")
    if missing := [scope for scope in scopes if not covers(grant.scopes, scope)]:
        raise ToolError(
            ErrorCode.PERMISSION, f"the login does not cover {', '.join(missing)}: grant it on Google's page"
        )


async def revoke(grant: GoogleGrant, http: Http) -> str:
    """Has Google revoke a grant. Why it did not, or an empty text."""
    try:
        reply = await post_form(http, f"{grant.issuer}/revoke", {"token": grant.refresh_token})
    except ToolError as problem:
        return problem.message
    return "" if reply.status == 200 else f"Google answered {reply.status}"
