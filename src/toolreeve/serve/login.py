"""Login of a browser: a one-time link becomes a session cookie.

The link works once and for some minutes. The cookie is HttpOnly and SameSite=Strict, goes to the API only, and is worth
nothing for a change without the CSRF token that only our own page can read.
"""

import secrets
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from toolreeve.core.call import LOCAL, Principal
from toolreeve.record.credentials import LINK, SESSION, CredentialTable, digest_of
from toolreeve.serve.access import COOKIE
from toolreeve.serve.console_files import security_headers
from toolreeve.serve.tokens import ALL_SCOPES, AccessScope, new_stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

LINK_SECONDS = 15 * 60.0
SESSION_SECONDS = 12 * 3600.0
LOGIN = "/login"
_EXPIRED = "This link was used already, or has expired. For another one, run: toolreeve tokens link\n"


class Login:
    """`refresh` makes the server accept what was stored."""

    def __init__(
        self, table: CredentialTable, now: "Callable[[], float]", refresh: "Callable[[], Awaitable[None]]"
    ) -> None:
        self._table = table
        self._now = now
        self._refresh = refresh

    def routes(self) -> list[BaseRoute]:
        return [Route(LOGIN, self.answer, methods=["GET"])]

    async def answer(self, request: Request) -> Response:
        code = request.query_params.get("code", "")
        found = await self._table.redeem(digest_of(code), now=self._now()) if code else None
        if found is None:
            return PlainTextResponse(_EXPIRED, 403, security_headers())
        principal = Principal(user=found.user, role=type(LOCAL.role)(found.role))
        return await self.admit(request, principal, frozenset(map(AccessScope, found.scopes)))

    async def admit(self, request: Request, principal: Principal, scopes: "Collection[AccessScope]") -> Response:
        """Start a session and open the console."""
        cookie = secrets.token_hex(32)
        now = self._now()
        session = new_stored(
            cookie,
            kind=SESSION,
            user=principal.user,
            role=principal.role,
            scopes=scopes,
            name=request.headers.get("user-agent", "")[:200],
            now=now,
            expires=now + SESSION_SECONDS,
        )
        await self._table.add(session)
        await self._refresh()
        response = RedirectResponse("/", 303, security_headers())
        response.headers["cache-control"] = "no-store"
        response.set_cookie(
            COOKIE,
            cookie,
            max_age=int(SESSION_SECONDS),
            path="/api/v1",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response


async def new_link(table: CredentialTable, now: float, base: str) -> str:
    """A URL that opens the console once, with every scope, as the local user."""
    code = secrets.token_urlsafe(32)
    link = new_stored(
        code,
        kind=LINK,
        user=LOCAL.user,
        role=LOCAL.role,
        scopes=ALL_SCOPES,
        name="one-time link",
        now=now,
        expires=now + LINK_SECONDS,
    )
    await table.add(link)
    return f"{base}{LOGIN}?code={code}"
