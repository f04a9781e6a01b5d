"""May we use this server? What was granted is sent along, renewed when it runs out, and asked for when it is not there.

Nothing is asked of a person unless somebody is there to answer: otherwise the server is away until the user logs in.
No call waits for another here; all of them wait for one login.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.core.urls import parse_url
from toolreeve.upstream.oauth.callback import LoginCallback, LoginFailed, redirect_place
from toolreeve.upstream.oauth.endpoint import REQUEST_SECONDS, OAuthEndpoint
from toolreeve.upstream.oauth.settings import OAuthSettings
from toolreeve.upstream.oauth.token_file import Grant, TokenFile, secrets_of
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.transports.http_client import HttpClient, explain
from toolreeve.upstream.transports.transport import ServerUnavailable

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider

    from toolreeve.upstream.oauth.provider import StoredGrant

Authorize = Callable[[str], Awaitable[None]]
LOGIN_SECONDS = 300.0
EARLY_SECONDS = 10.0
CHALLENGES = 2
UNAUTHORIZED, FORBIDDEN = 401, 403
FAILURES = (httpx2.HTTPError, ToolError, OSError, LoginFailed, ValueError)


def new_authorization(
    spec: ServerSpec, web: HttpClient, veil: Scrubber, *, state: Path, authorize: Authorize | None, fresh: bool = False
) -> "Authorization | None":
    """None where the user gave a header of their own to say who they are. Raises ServerAway."""
    if any(name.lower() == "authorization" for name in spec.headers):
        return None
    try:
        settings = OAuthSettings.parse(spec.oauth, source=spec.source, server=spec.name)
    except ConfigError as problem:
        raise ServerUnavailable(str(problem)) from None
    file = TokenFile(state, server=spec.name, url=web.url)
    return Authorization(spec.name, web, settings, file, veil, authorize=authorize, fresh=fresh)


class Authorization(httpx2.Auth):
    """What is sent along to one server. `granted` tells whether a token came of it in this object's time; the veil
    learns of every token before it is sent."""

    def __init__(
        self,
        server: str,
        web: HttpClient,
        settings: OAuthSettings,
        file: TokenFile,
        veil: Scrubber,
        *,
        authorize: Authorize | None,
        fresh: bool = False,
    ) -> None:
        self._server, self._web, self._settings, self._file = server, web, settings, file
        self._authorize, self._fresh, self._veil = authorize, fresh, veil
        self._exchange = OAuthEndpoint(web)
        veil.learn(filter(None, [settings.client_secret]))
        self._hold(_without_tokens(file.read()) if fresh else file.read())
        self._renewed: str | None = None
        self._settling: asyncio.Task[None] | None = None
        self._failure: ServerUnavailable | None = None
        self.granted = False

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._token() is not None and not self._file.exists():  # the user has logged out
            self._hold({})
        if self._has_run_out():
            await self._settle(None, self._token())
        used = self._sign(request)
        response = yield request
        for _ in range(CHALLENGES):
            if not _is_challenge(response):
                return
            await self._settle(response, used)
            if self._token() == used:
                return
            used = self._sign(request)
            response = yield request

    async def close(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait([self._settling])
        await self._exchange.close()

    def _hold(self, grant: Grant) -> None:
        self._grant = grant
        self._veil.learn(secrets_of(grant))

    def _token(self) -> str | None:
        tokens = self._grant.get("tokens")
        token = tokens.get("access_token") if isinstance(tokens, dict) else None
        return token if isinstance(token, str) else None

    def _can_renew(self) -> bool:
        tokens = self._grant.get("tokens")
        return isinstance(tokens, dict) and bool(tokens.get("refresh_token"))

    def _has_run_out(self) -> bool:
        expires_at = self._grant.get("expires_at")
        return isinstance(expires_at, int | float) and time.time() > expires_at - EARLY_SECONDS and self._can_renew()

    def _sign(self, request: httpx2.Request) -> str | None:
        token = self._token()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return token

    async def _settle(self, challenge: httpx2.Response | None, used: str | None) -> None:
        """Get another token than the one that did not do. All who need it wait for the same one; who gives up waiting
        does not end it for the others. Raises ServerAway."""
        if self._token() != used:
            return
        if self._settling is None:
            self._settling = asyncio.create_task(self._obtain(challenge, used))
            self._settling.add_done_callback(self._settled)
        await asyncio.shield(self._settling)

    def _settled(self, task: "asyncio.Task[None]") -> None:
        self._settling = None
        if not task.cancelled():
            task.exception()

    async def _obtain(self, challenge: httpx2.Response | None, used: str | None) -> None:
        if not self._fresh and await self._was_renewed_elsewhere(used):
            return
        await asyncio.to_thread(import_module, "toolreeve.upstream.oauth.provider")  # the SDK takes its time to load
        wants_more = challenge is not None and challenge.status_code == FORBIDDEN
        if not wants_more and await self._renew(used):
            return
        if challenge is not None:
            await self._ask(challenge, wants_more=wants_more)

    async def _was_renewed_elsewhere(self, used: str | None) -> bool:
        """Another process may have been here before us, and a token that renews is often good for once."""
        self._hold(await asyncio.to_thread(self._file.read))
        return self._token() != used

    async def _renew(self, used: str | None) -> bool:
        if not self._can_renew() or self._renewed == used:
            return False
        provider, kept = self._new_provider(None, expired=True)
        with suppress(*FAILURES):
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._exchange.drive(provider, None)
        await self._take_stock(provider, kept)
        self._renewed = self._token()
        return self._token() != used

    async def _ask(self, challenge: httpx2.Response, *, wants_more: bool) -> None:
        if self._authorize is None and self._settings.grant == "authorization_code":
            if wants_more:
                return
            raise ServerUnavailable(f"the server asks for a login; run `toolreeve servers login {self._server}`")
        if self._failure is not None:
            raise self._failure
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                await self._log_in(challenge)
        except FAILURES as problem:
            why = "nobody answered" if isinstance(problem, TimeoutError) else explain(problem)
            self._failure = ServerUnavailable(f"the login failed: {why}")
            raise self._failure from None

    async def _log_in(self, challenge: httpx2.Response) -> None:
        async with self._redirect() as place:
            provider, kept = self._new_provider(place, expired=False)
            if challenge.status_code == UNAUTHORIZED:
                provider.context.oauth_metadata = None
            await self._exchange.drive(provider, challenge)
            await self._take_stock(provider, kept)
        self.granted = True

    @asynccontextmanager
    async def _redirect(self) -> AsyncIterator[LoginCallback]:
        """The port that the client was registered with, where it still can be had; else the client is a new one."""
        port = self._settings.redirect_port or _port_of(self._grant)
        async with AsyncExitStack() as stack:
            try:
                place = await stack.enter_async_context(redirect_place(port))
            except OSError:
                if port is None or self._settings.redirect_port is not None:
                    raise
                await asyncio.to_thread(self._file.update, client=None)
                place = await stack.enter_async_context(redirect_place())
            yield place

    def _new_provider(self, place: LoginCallback | None, *, expired: bool) -> "tuple[OAuthClientProvider, StoredGrant]":
        from toolreeve.upstream.oauth.provider import StoredGrant, code_result, new_provider, recall

        async def send_browser(url: str) -> None:
            self._exchange.check(url)
            self._web.screen(url)
            if place is None or self._authorize is None:
                raise LoginFailed("nobody is there to log in")
            place.expect(url)
            await self._authorize(url)

        async def wait_for_browser() -> object:
            if place is None:
                raise LoginFailed("nobody is there to log in")
            came = await place.outcome()
            return code_result(came.code, came.state, came.issuer)

        kept = StoredGrant(self._file, self._settings, fresh=self._fresh)
        uri = place.uri if place is not None else "http://127.0.0.1/callback"
        provider = new_provider(
            self._web.url, self._settings, kept, uri, redirect_handler=send_browser, callback_handler=wait_for_browser
        )
        recall(provider, self._grant, expired=expired)
        return provider, kept

    async def _take_stock(self, provider: "OAuthClientProvider", kept: "StoredGrant") -> None:
        await kept.learn(provider)
        self._hold(await asyncio.to_thread(self._file.read))
        self._fresh = False


def _is_challenge(response: httpx2.Response) -> bool:
    if response.status_code == UNAUTHORIZED:
        return True
    said = response.headers.get("www-authenticate", "")
    return response.status_code == FORBIDDEN and "insufficient_scope" in said


def _without_tokens(grant: Grant) -> Grant:
    return {name: value for name, value in grant.items() if name not in ("tokens", "expires_at")}


def _port_of(grant: Grant) -> int | None:
    """The port of the redirect that the kept client was registered with."""
    client = grant.get("client")
    uris = client.get("redirect_uris") if isinstance(client, dict) else None
    if isinstance(uris, list) and uris and isinstance(uris[0], str):
        with suppress(ToolError):
            return parse_url(uris[0]).port
    return None
