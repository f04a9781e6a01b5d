"""Sends, renews and obtains the OAuth token of one server.

A login starts only where a person can be asked: otherwise the server is unavailable until the user logs in. No request
waits for another one; all of them wait for the same login.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.core.urls import parse_url
from toolreeve.upstream.oauth.callback import LoginCallback, LoginFailed, listen_for_callback
from toolreeve.upstream.oauth.endpoint import REQUEST_SECONDS, OAuthEndpoint
from toolreeve.upstream.oauth.settings import OAuthSettings
from toolreeve.upstream.oauth.token_file import Grant, TokenFile, secrets_of
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.transports.connect import Authorize
from toolreeve.upstream.transports.http_client import HttpClient, explain
from toolreeve.upstream.transports.transport import ServerUnavailable

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

    from toolreeve.upstream.oauth.provider import StoredGrant

LOGIN_SECONDS = 300.0
EARLY_SECONDS = 10.0
"""A token is renewed this long before it expires."""
MAX_CHALLENGES = 2
UNAUTHORIZED = 401
FORBIDDEN = 403
FAILURES = (httpx2.HTTPError, ToolError, OSError, LoginFailed, ValueError)


def new_authorization(
    spec: ServerSpec,
    client: HttpClient,
    scrubber: Scrubber,
    *,
    state: Path,
    authorize: Authorize | None,
    fresh: bool = False,
) -> "Authorization | None":
    """None where the user configured an Authorization header. Raises ServerUnavailable."""
    if any(name.lower() == "authorization" for name in spec.headers):
        return None
    try:
        settings = OAuthSettings.parse(spec.oauth, source=spec.source, server=spec.name)
    except ConfigError as problem:
        raise ServerUnavailable(str(problem)) from None
    file = TokenFile(state, server=spec.name, url=client.url)
    return Authorization(spec.name, client, settings, file, scrubber, authorize=authorize, fresh=fresh)


class Authorization(httpx2.Auth):
    """Authorizes the requests to one server. `granted` is whether this object has obtained a token by a login; the
    scrubber learns every token before it is sent."""

    def __init__(
        self,
        server: str,
        client: HttpClient,
        settings: OAuthSettings,
        file: TokenFile,
        scrubber: Scrubber,
        *,
        authorize: Authorize | None,
        fresh: bool = False,
    ) -> None:
        self._server = server
        self._client = client
        self._settings = settings
        self._file = file
        self._authorize = authorize
        self._is_fresh = fresh
        self._scrubber = scrubber
        self._endpoint = OAuthEndpoint(client)
        scrubber.learn(filter(None, [settings.client_secret]))
        self._set_grant(_without_tokens(file.read()) if fresh else file.read())
        self._renewed: str | None = None
        self._obtaining: asyncio.Task[None] | None = None
        self._failure: ServerUnavailable | None = None
        self.granted = False

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._token() is not None and not self._file.exists():  # the user has logged out
            self._set_grant({})
        if self._has_expired():
            await self._replace(None, self._token())
        used = self._sign(request)
        response = yield request
        for _ in range(MAX_CHALLENGES):
            if not _is_challenge(response):
                return
            await self._replace(response, used)
            if self._token() == used:
                return
            used = self._sign(request)
            response = yield request

    async def close(self) -> None:
        if self._obtaining is not None:
            self._obtaining.cancel()
            await asyncio.wait([self._obtaining])
        await self._endpoint.close()

    def _set_grant(self, grant: Grant) -> None:
        self._grant = grant
        self._scrubber.learn(secrets_of(grant))

    def _token(self) -> str | None:
        tokens = self._grant.get("tokens")
        token = tokens.get("access_token") if isinstance(tokens, dict) else None
        return token if isinstance(token, str) else None

    def _can_renew(self) -> bool:
        tokens = self._grant.get("tokens")
        return isinstance(tokens, dict) and bool(tokens.get("refresh_token"))

    def _has_expired(self) -> bool:
        expires_at = self._grant.get("expires_at")
        return isinstance(expires_at, int | float) and time.time() > expires_at - EARLY_SECONDS and self._can_renew()

    def _sign(self, request: httpx2.Request) -> str | None:
        token = self._token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return token

    async def _replace(self, challenge: httpx2.Response | None, used: str | None) -> None:
        """Get another token than the one that was used. All requests wait for the same one; a cancelled request does
        not cancel it for the others. Raises ServerUnavailable."""
        if self._token() != used:
            return
        if self._obtaining is None:
            self._obtaining = asyncio.create_task(self._obtain(challenge, used))
            self._obtaining.add_done_callback(self._obtained)
        await asyncio.shield(self._obtaining)

    def _obtained(self, task: "asyncio.Task[None]") -> None:
        self._obtaining = None
        if not task.cancelled():
            task.exception()

    async def _obtain(self, challenge: httpx2.Response | None, used: str | None) -> None:
        if not self._is_fresh and await self._was_renewed_elsewhere(used):
            return
        await asyncio.to_thread(import_module, "toolreeve.upstream.oauth.provider")  # the SDK is slow to import
        needs_scope = challenge is not None and challenge.status_code == FORBIDDEN
        if not needs_scope and await self._renew(used):
            return
        if challenge is not None:
            await self._request_login(challenge, needs_scope=needs_scope)

    async def _was_renewed_elsewhere(self, used: str | None) -> bool:
        """Another process may have renewed it before us, and a refresh token is often valid only once."""
        self._set_grant(await asyncio.to_thread(self._file.read))
        return self._token() != used

    async def _renew(self, used: str | None) -> bool:
        if not self._can_renew() or self._renewed == used:
            return False
        provider, storage = self._new_provider(None, expired=True)
        with suppress(*FAILURES):
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._endpoint.drive(provider, None)
        await self._store(provider, storage)
        self._renewed = self._token()
        return self._token() != used

    async def _request_login(self, challenge: httpx2.Response, *, needs_scope: bool) -> None:
        if self._authorize is None and self._settings.grant == "authorization_code":
            if needs_scope:
                return
            raise ServerUnavailable(f"the server requires a login; run `toolreeve servers login {self._server}`")
        if self._failure is not None:
            raise self._failure
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await self._log_in(challenge)
        except FAILURES as problem:
            why = "no login within the time limit" if isinstance(problem, TimeoutError) else explain(problem)
            self._failure = ServerUnavailable(f"the login failed: {why}")
            raise self._failure from None

    async def _log_in(self, challenge: httpx2.Response) -> None:
        async with self._listen() as callback:
            provider, storage = self._new_provider(callback, expired=False)
            if challenge.status_code == UNAUTHORIZED:
                provider.context.oauth_metadata = None
            await self._endpoint.drive(provider, challenge)
            await self._store(provider, storage)
        self.granted = True

    @asynccontextmanager
    async def _listen(self) -> AsyncIterator[LoginCallback]:
        """On the port that the client was registered with, if it is free; else a new client is registered."""
        port = self._settings.redirect_port or _port_of(self._grant)
        async with AsyncExitStack() as stack:
            try:
                callback = await stack.enter_async_context(listen_for_callback(port))
            except OSError:
                if port is None or self._settings.redirect_port is not None:
                    raise
                await asyncio.to_thread(self._file.update, client=None)
                callback = await stack.enter_async_context(listen_for_callback())
            yield callback

    def _new_provider(
        self, callback: LoginCallback | None, *, expired: bool
    ) -> "tuple[OAuthClientProvider, StoredGrant]":
        from toolreeve.upstream.oauth.provider import StoredGrant, code_result, new_provider, recall

        async def send_browser(url: str) -> None:
            self._endpoint.check(url)
            self._client.screen(url)
            if callback is None or self._authorize is None:
                raise LoginFailed("there is no person to log in")
            callback.expect(url)
            await self._authorize(url)

        async def wait_for_browser() -> object:
            if callback is None:
                raise LoginFailed("there is no person to log in")
            outcome = await callback.outcome()
            return code_result(outcome.code, outcome.state, outcome.issuer)

        storage = StoredGrant(self._file, self._settings, fresh=self._is_fresh)
        provider = new_provider(
            self._client.url,
            self._settings,
            storage,
            callback.uri if callback is not None else "http://127.0.0.1/callback",
            redirect_handler=send_browser,
            callback_handler=wait_for_browser,
        )
        recall(provider, self._grant, expired=expired)
        return provider, storage

    async def _store(self, provider: "OAuthClientProvider", storage: "StoredGrant") -> None:
        await storage.learn(provider)
        self._set_grant(await asyncio.to_thread(self._file.read))
        self._is_fresh = False


def _is_challenge(response: httpx2.Response) -> bool:
    if response.status_code == UNAUTHORIZED:
        return True
    challenge = response.headers.get("www-authenticate", "")
    return response.status_code == FORBIDDEN and "insufficient_scope" in challenge


def _without_tokens(grant: Grant) -> Grant:
    return {name: value for name, value in grant.items() if name not in ("tokens", "expires_at")}


def _port_of(grant: Grant) -> int | None:
    """The port of the redirect URI that the stored client was registered with."""
    client = grant.get("client")
    uris = client.get("redirect_uris") if isinstance(client, dict) else None
    if isinstance(uris, list) and uris and isinstance(uris[0], str):
        with suppress(ToolError):
            return parse_url(uris[0]).port
    return None
