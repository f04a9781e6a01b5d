"""Endpoints of tokens: add, list and revoke, for administrators."""

import math
import secrets
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.core.call import Role
from toolreeve.core.errors import ErrorCode
from toolreeve.record.credentials import LINK, TOKEN
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints
from toolreeve.serve.api.problems import Problem, not_found
from toolreeve.serve.exchange import CONNECTION
from toolreeve.serve.tokens import ALL_SCOPES, ROLE_SCOPES, AccessScope, Credential, new_stored

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
    """`token` is shown this once; only its digest is stored. `expires` is no later than that of the token which made
    it."""

    id: str
    token: str
    expires: float


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
    """Make a token, for no more than the credential may do itself. One made with a token ends with that one at the
    latest. From the first on, every request needs one, or a browser's session."""
    _check_grantable(request.credential, body)
    secret = f"tr_{secrets.token_urlsafe(32)}"
    now = request.services.now()
    own = request.credential
    maker = "" if own.csrf else own.id  # a browser's session is a person, who logs in again
    latest = own.expires if maker and own.expires is not None else math.inf
    expires = min(now + body.days * DAY, latest)
    row = new_stored(
        secret,
        kind=TOKEN,
        user=body.user,
        role=Role(body.role),
        scopes=[AccessScope(each) for each in body.scopes],
        tools=body.tools or own.tools,
        name=body.name,
        now=now,
        expires=expires,
        maker=maker,
    )
    await request.services.reeve.internals.store.credentials.add(row)
    await request.services.reeve.internals.journal.note("token", {"added": row.to_dict(), "user": own.principal.user})
    await request.services.refresh_tokens()
    return {"id": row.id, "token": secret, "expires": expires}


@tokens.delete("/tokens/{number}", AccessScope.MANAGE)
async def revoke_token(request: ApiRequest, number: str) -> None:
    """Revoke a token and those made with it, or end a browser's session: the next request is refused; streams and
    running calls end."""
    if not await request.services.revoke(number, request.http.scope[CONNECTION]):
        raise not_found(f"no token {number!r:.100}")
    await request.services.reeve.internals.journal.note(
        "token", {"revoked": number, "user": request.credential.principal.user}
    )


def _check_grantable(own: Credential, body: TokenBody) -> None:
    """Raises Problem for a token that could do more than the credential it is made with."""
    role = Role(body.role)
    asked = frozenset(map(AccessScope, body.scopes)) or ROLE_SCOPES[role]
    ranks = list(Role)
    problem = ""
    if missing := sorted(asked - own.scopes):
        problem = f"a credential without the scope {missing[0].value!r} cannot make a token that has it"
    elif ranks.index(role) > ranks.index(own.principal.role) and own.scopes != ALL_SCOPES:
        problem = f"a credential of the role {own.principal.role.value} cannot make a token of the role {role.value}"
    elif own.tools and body.tools and tuple(body.tools) != own.tools:
        problem = f"the credential is limited to the tools {', '.join(own.tools)}; leave out `tools`"
    if problem:
        raise Problem(403, problem, code=ErrorCode.PERMISSION)
