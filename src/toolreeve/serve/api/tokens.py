"""Endpoints of tokens: add, list and revoke, for administrators."""

import secrets
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.core.call import Role
from toolreeve.record.credentials import LINK, TOKEN
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints
from toolreeve.serve.api.problems import not_found
from toolreeve.serve.tokens import AccessScope, new_stored

DAY = 86_400.0
tokens = Endpoints("tokens")


class TokenRow(TypedDict):
    """`kind` is token, or session for a browser that is logged in."""

    id: str
    kind: Literal["token", "session"]
    name: str
    user: str
    role: str
    scopes: list[str]
    tools: list[str]
    created: float
    expires: float | None


class TokenList(TypedDict):
    tokens: list[TokenRow]


class NewToken(TypedDict):
    """`token` is shown this once; only its digest is stored."""

    id: str
    token: str


class TokenBody(Body):
    user: Annotated[str, Field(min_length=1, max_length=200)]
    role: Literal["viewer", "operator", "admin"] = "viewer"
    scopes: list[Literal["read", "call", "approve", "manage", "metrics"]] = Field(default_factory=list, max_length=5)
    tools: list[Annotated[str, Field(max_length=200)]] = Field(default_factory=list, max_length=100)
    days: Annotated[float, Field(gt=0, le=3650, strict=False)] = 90.0
    name: Annotated[str, Field(max_length=200)] = ""


@tokens.get("/tokens", AccessScope.MANAGE)
async def list_tokens(request: ApiRequest) -> TokenList:
    """List the valid tokens and browser sessions."""
    found = await request.services.reeve.internals.store.credentials.list(now=request.services.now())
    rows: list[Any] = [{**each.to_dict(), "kind": each.kind} for each in found if each.kind != LINK]
    return {"tokens": rows}


@tokens.post("/tokens", AccessScope.MANAGE)
async def add_token(request: ApiRequest, body: TokenBody) -> NewToken:
    """Make a token. From the first on, every request needs one, or a browser's session."""
    secret = f"tr_{secrets.token_urlsafe(32)}"
    now = request.services.now()
    row = new_stored(
        secret,
        kind=TOKEN,
        user=body.user,
        role=Role(body.role),
        scopes=[AccessScope(each) for each in body.scopes],
        tools=body.tools,
        name=body.name,
        now=now,
        expires=now + body.days * DAY,
    )
    await request.services.reeve.internals.store.credentials.add(row)
    await request.services.reeve.internals.journal.note(
        "token", {"added": row.to_dict(), "user": request.credential.principal.user}
    )
    await request.services.refresh_tokens()
    return {"id": row.id, "token": secret}


@tokens.delete("/tokens/{number}", AccessScope.MANAGE)
async def revoke_token(request: ApiRequest, number: str) -> None:
    """Revoke a token, or end a browser's session: its next request is refused, and its open streams end."""
    if not await request.services.revoke(number):
        raise not_found(f"no token {number!r:.100}")
    await request.services.reeve.internals.journal.note(
        "token", {"revoked": number, "user": request.credential.principal.user}
    )
