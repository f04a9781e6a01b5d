"""The user's Google account: one grant per product, renewed when it expires.

A grant belongs to the OAuth client and the token endpoint that it was issued by; no other gets its refresh token. All
calls that find a token expired wait for the same renewal, those of other processes too.
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from toolreeve.connectors.api import ApiClient, missing_secret
from toolreeve.connectors.catalogue import GOOGLE_CLIENT, GOOGLE_LOGIN, ServiceUrls
from toolreeve.core import json
from toolreeve.core.context import Context, SecretAccess
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.http import Http, HttpReply, HttpRequest
from toolreeve.core.urls import encode_form

SCOPE = "https://www.googleapis.com/auth/"
EARLY = 60.0
"""A token is renewed this many seconds before it expires."""
_WIDER: Mapping[str, frozenset[str]] = {
    "gmail.readonly": frozenset(("gmail.modify", "https://mail.google.com/")),
    "gmail.send": frozenset(("gmail.modify", "gmail.compose", "https://mail.google.com/")),
    "calendar.events.readonly": frozenset(("calendar.events", "calendar.readonly", "calendar")),
    "calendar.events": frozenset(("calendar",)),
}


@dataclass(frozen=True, slots=True)
class Product:
    """A Google product with a grant of its own, and the least scope of each of its tools."""

    name: str
    secret: str
    tool_scopes: Mapping[str, str]

    def scopes(self, tools: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({self.tool_scopes[name] for name in tools if name in self.tool_scopes}))


GMAIL = Product(
    "gmail",
    "GOOGLE_GMAIL_GRANT",
    {"gmail_search": "gmail.readonly", "gmail_read": "gmail.readonly", "gmail_send": "gmail.send"},
)
CALENDAR = Product(
    "calendar",
    "GOOGLE_CALENDAR_GRANT",
    {
        "calendar_list_events": "calendar.events.readonly",
        "calendar_get_event": "calendar.events.readonly",
        "calendar_create_event": "calendar.events",
    },
)
PRODUCTS = (GMAIL, CALENDAR)


def scope_url(scope: str) -> str:
    return scope if scope.startswith("https://") else f"{SCOPE}{scope}"


def covers(granted: Iterable[str], scope: str) -> bool:
    held = {each.removeprefix(SCOPE) for each in granted}
    return scope in held or bool(held & _WIDER.get(scope, frozenset()))


@dataclass(frozen=True, slots=True, kw_only=True)
class GoogleGrant:
    """`client_id` and `issuer` are whom the tokens belong to."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    expires_at: float
    scopes: tuple[str, ...]
    client_id: str
    issuer: str

    @staticmethod
    def read(text: str) -> "GoogleGrant | None":
        """None for a text that is no grant."""
        try:
            found = json.loads(text)
            return GoogleGrant(**found | {"scopes": tuple(found["scopes"])})
        except (ValueError, TypeError, KeyError):
            return None

    def write(self) -> str:
        return json.dumps(asdict(self)).decode()


@dataclass(frozen=True, slots=True)
class GoogleClient:
    """The OAuth client that the user registered with Google, and its token endpoint."""

    id: str
    secret: str = field(repr=False)
    issuer: str

    @staticmethod
    async def find(secrets: SecretAccess, urls: ServiceUrls) -> "GoogleClient":
        """Raises ToolError, which names what is missing."""
        found = [await secrets.find(name) for name in GOOGLE_CLIENT]
        for name, value in zip(GOOGLE_CLIENT, found, strict=True):
            if not value:
                raise missing_secret(name)
        return GoogleClient(str(found[0]), str(found[1]), urls.google_oauth)

    async def request_token(self, http: Http, form: Mapping[str, str]) -> HttpReply:
        return await post_form(
            http, f"{self.issuer}/token", {"client_id": self.id, "client_secret": self.secret, **form}
        )

    def grant(self, reply: HttpReply, now: float, old: GoogleGrant | None, asked: tuple[str, ...]) -> GoogleGrant:
        """The grant in a token response. Raises ToolError(UPSTREAM)."""
        found = read_object(reply)
        token = found.get("access_token")
        if reply.status != 200 or not isinstance(token, str) or not token:
            raise ToolError(ErrorCode.UPSTREAM, f"Google issued no token: {_error(found, reply.status)}")
        lifetime = found.get("expires_in")
        scope = found.get("scope")
        return GoogleGrant(
            access_token=token,
            refresh_token=str(found.get("refresh_token") or (old.refresh_token if old else "")),
            expires_at=now + (lifetime if isinstance(lifetime, int) else 0),
            scopes=tuple(scope.split()) if isinstance(scope, str) else asked,
            client_id=self.id,
            issuer=self.issuer,
        )


async def post_form(http: Http, url: str, form: Mapping[str, str]) -> HttpReply:
    headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
    return await http.send(HttpRequest(method="POST", url=url, headers=headers, body=encode_form(form)))


class GoogleAccount:
    """The grant of one product. The requests of one call look it up once."""

    def __init__(self, product: Product, urls: ServiceUrls) -> None:
        self.product = product
        self._endpoints = urls
        self._renewing: asyncio.Task[GoogleGrant] | None = None
        self._looked_up: tuple[str, GoogleGrant | None] = ("", None)

    async def token(self, ctx: Context, scope: str) -> str:
        """A token that is not known to have expired. Raises ToolError, which says what to run."""
        call, grant = self._looked_up
        if call != ctx.call.id or grant is None:
            grant = await self.load(ctx.secrets)
        if grant is None:
            raise _login(f"no Google account is connected for {self.product.name}")
        if not covers(grant.scopes, scope):
            raise _login(f"the Google login does not cover {scope}")
        if ctx.now() > grant.expires_at - EARLY:
            grant = await self.renew(ctx, grant.access_token)
        self._looked_up = (ctx.call.id, grant)
        return grant.access_token

    async def renew(self, ctx: Context, used: str) -> GoogleGrant:
        """Another token than the one used. Cancelling one call does not cancel it for the others."""
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renew(ctx, used))
        grant = await asyncio.shield(self._renewing)
        self._looked_up = (ctx.call.id, grant)
        return grant

    async def load(self, secrets: SecretAccess) -> GoogleGrant | None:
        stored = await secrets.find(self.product.secret)
        grant = None if stored is None else GoogleGrant.read(stored)
        if grant is None:
            return None
        client = await GoogleClient.find(secrets, self._endpoints)
        if (grant.client_id, grant.issuer) != (client.id, client.issuer):
            return None
        secrets.redact((grant.access_token, grant.refresh_token))
        return grant

    async def _renew(self, ctx: Context, used: str) -> GoogleGrant:
        async with ctx.secrets.exclusive(self.product.secret):
            return await self._renew_alone(ctx, used)

    async def _renew_alone(self, ctx: Context, used: str) -> GoogleGrant:
        grant = await self.load(ctx.secrets)
        if grant is None:
            raise _login(f"no Google account is connected for {self.product.name}")
        if grant.access_token != used:  # another process has renewed it
            return grant
        client = await GoogleClient.find(ctx.secrets, self._endpoints)
        form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
        reply = await client.request_token(ctx.http, form)
        if read_object(reply).get("error") == "invalid_grant":
            raise _login(f"the Google login for {self.product.name} has expired or was revoked")
        renewed = client.grant(reply, ctx.now(), grant, grant.scopes)
        await store_grant(ctx.secrets, self.product, renewed)
        return renewed


async def store_grant(secrets: SecretAccess, product: Product, grant: GoogleGrant) -> None:
    secrets.redact((grant.access_token, grant.refresh_token))
    await secrets.keep(product.secret, grant.write())


@dataclass(frozen=True, slots=True)
class GoogleCredential:
    """Authorizes requests that need one scope."""

    account: GoogleAccount
    scope: str

    async def headers(self, ctx: Context) -> Mapping[str, str]:
        return {"authorization": f"Bearer {await self.account.token(ctx, self.scope)}"}

    async def renew(self, ctx: Context, rejected: Mapping[str, str]) -> bool:
        used = rejected["authorization"].removeprefix("Bearer ")
        return (await self.account.renew(ctx, used)).access_token != used


def google_client(title: str, base: str, account: GoogleAccount, scope: str) -> ApiClient:
    """A client of a product for requests that need one scope."""
    return ApiClient(
        title=title, base=base, credential=GoogleCredential(account, scope), remedy=f"run `{GOOGLE_LOGIN}`"
    )


def read_object(reply: HttpReply) -> Mapping[str, Any]:
    try:
        found = json.loads(reply.body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _error(found: Mapping[str, Any], status: int) -> str:
    return str(found.get("error_description") or found.get("error") or f"status {status}")[:300]


def _login(problem: str) -> ToolError:
    return ToolError(
        ErrorCode.PERMISSION, f"{problem}: run `{GOOGLE_LOGIN}`", suggestions=(GOOGLE_LOGIN,), retryable=False
    )
