"""Login of a browser: a one-time link becomes a session cookie.

The link works once and for some minutes; opening it uses nothing up, so that a preview or a prefetch does not: the page
sends the code back by POST. The cookie is HttpOnly and SameSite=Strict, and is worth nothing for a change without the
CSRF token that only our own page can read.
"""

import secrets
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from toolreeve.core.call import LOCAL, Principal
from toolreeve.record.credentials import LINK, SESSION, CredentialTable, digest_of
from toolreeve.serve.access import cookie_name
from toolreeve.serve.console_files import security_headers
from toolreeve.serve.tokens import ALL_SCOPES, AccessScope, new_stored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

LINK_SECONDS = 15 * 60.0
SESSION_SECONDS = 12 * 3600.0
LOGIN = "/login"
SCRIPT = f"{LOGIN}/open.js"
_PAGE = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><title>Toolreeve</title></head><body><main>
<form method="post"><button>Open the console</button></form></main><script src="{SCRIPT}"></script></body></html>
"""
_HEADERS = {"cache-control": "no-store", "referrer-policy": "same-origin"}
"""With no-referrer a browser sends the form with `Origin: null`, which is refused."""
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
        return [
            Route(LOGIN, self.show, methods=["GET"]),
            Route(LOGIN, self.answer, methods=["POST"]),
            Route(SCRIPT, self.script, methods=["GET"]),
        ]

    async def show(self, request: Request) -> Response:
        code = request.query_params.get("code", "")
        found = await self._table.list(now=self._now()) if code else ()
        if not any(each.kind == LINK and each.digest == digest_of(code) for each in found):
            return PlainTextResponse(_EXPIRED, 403, security_headers())
        return HTMLResponse(_PAGE, headers={**security_headers(), **_HEADERS})

    async def script(self, _: Request) -> Response:
        """For people: programs that only look at links run no scripts."""
        return Response("document.forms[0].submit();\n", media_type="text/javascript", headers=security_headers())

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
        secure = "https" in (request.url.scheme, request.headers.get("origin", "").partition(":")[0])
        response.set_cookie(
            cookie_name(request.headers["host"], secure=secure),
            cookie,
            max_age=int(SESSION_SECONDS),
            path="/" if secure else "/api/v1",
            httponly=True,
            samesite="strict",
            secure=secure,
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
