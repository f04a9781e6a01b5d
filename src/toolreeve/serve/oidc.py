"""OpenID Connect login: the provider names the user, groups give roles.

Authorization code with PKCE; state, nonce and verifier are bound to the browser that began the login. Nobody gets in
whose groups have no role. Needs the extra `oidc`.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from toolreeve.core.call import Principal, Role
from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.serve.console_files import security_headers
from toolreeve.serve.login import Login
from toolreeve.serve.tokens import ROLE_SCOPES, AccessScope

if TYPE_CHECKING:
    from toolreeve.guard.network.client import GuardedHttp

START = "/login/oidc"
CALLBACK = "/login/callback"
COOKIE = "toolreeve_login"
LOGIN_SECONDS = 600
MAX_LOGINS = 1_000
MISSING = "pip install 'toolreeve[oidc]'"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Never `none`, and never HMAC: the client's secret is no key of the provider."""


class LoginRefused(Exception):
    """The login failed; the message is for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """`roles` maps groups to roles; `user_claim` names the user, `groups_claim` lists the groups."""

    issuer: str
    client_id: str
    client_secret: str
    roles: Mapping[str, Role]
    user_claim: str = "email"
    groups_claim: str = "groups"
    scope: str = "openid email profile groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    state: str
    nonce: str
    verifier: str
    until: float


class OidcLogin:
    """Raises ConfigError if the extra is not installed."""

    def __init__(self, settings: OidcSettings, login: Login, http: "GuardedHttp", now: Callable[[], float]) -> None:
        try:
            import authlib.oauth2.rfc7636
            import joserfc.jwt  # noqa: F401
        except ImportError:
            problem = "OpenID login needs Authlib, which is not installed"
            raise ConfigError(problem, source="serve.oidc", fix=MISSING) from None
        self._challenge = authlib.oauth2.rfc7636.create_s256_code_challenge
        self._settings = settings
        self._login = login
        self._http = http
        self._now = now
        self._pending: dict[str, _Pending] = {}
        self._metadata: Mapping[str, Any] | None = None

    def routes(self) -> list[BaseRoute]:
        return [Route(START, self.start, methods=["GET"]), Route(CALLBACK, self.finish, methods=["GET"])]

    async def start(self, request: Request) -> Response:
        """Send the browser to the provider."""
        try:
            metadata = await self._discover()
        except LoginRefused as refusal:
            return _refuse(refusal)
        key = secrets.token_urlsafe(32)
        pending = self._remember(key)
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": _callback_url(request),
            "scope": self._settings.scope,
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": self._challenge(pending.verifier),
            "code_challenge_method": "S256",
        }
        response = RedirectResponse(f"{metadata['authorization_endpoint']}?{urlencode(query)}", 303, security_headers())
        response.set_cookie(COOKIE, key, max_age=LOGIN_SECONDS, path="/login", httponly=True, samesite="lax")
        return response

    async def finish(self, request: Request) -> Response:
        """The provider has sent the browser back."""
        pending = self._pending.pop(request.cookies.get(COOKIE, ""), None)
        query = request.query_params
        try:
            if pending is None or pending.until < self._now():
                raise LoginRefused(f"this login has expired or began in another browser; begin again at {START}")
            if not secrets.compare_digest(query.get("state", "").encode(), pending.state.encode()):
                raise LoginRefused("the provider's answer belongs to another login")
            if "code" not in query:
                raise LoginRefused(f"the provider refused the login: {query.get('error', 'no code')[:200]}")
            claims = await self._redeem(query["code"], pending, _callback_url(request))
            principal = find_principal(claims, self._settings)
        except LoginRefused as refusal:
            return _refuse(refusal)
        return await self._login.admit(request, principal, person_scopes(principal.role))

    def _remember(self, key: str) -> _Pending:
        now = self._now()
        self._pending = {name: each for name, each in self._pending.items() if each.until > now}
        while len(self._pending) >= MAX_LOGINS:
            del self._pending[next(iter(self._pending))]
        words = [secrets.token_urlsafe(32) for _ in range(3)]
        made = _Pending(state=words[0], nonce=words[1], verifier=words[2], until=now + LOGIN_SECONDS)
        self._pending[key] = made
        return made

    async def _discover(self) -> Mapping[str, Any]:
        if self._metadata is None:
            issuer = self._settings.issuer.rstrip("/")
            found = await self._fetch("GET", f"{issuer}/.well-known/openid-configuration")
            if str(found.get("issuer", "")).rstrip("/") != issuer:
                raise LoginRefused("the provider calls itself by another name than serve.oidc.issuer")
            self._metadata = found
        return self._metadata

    async def _redeem(self, code: str, pending: _Pending, callback: str) -> Mapping[str, Any]:
        """The claims of the ID token, verified."""
        metadata = await self._discover()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret,
            "code_verifier": pending.verifier,
        }
        tokens = await self._fetch("POST", metadata["token_endpoint"], form)
        keys = await self._fetch("GET", metadata["jwks_uri"])
        return self._verify(str(tokens.get("id_token", "")), keys, pending.nonce)

    def _verify(self, token: str, keys: Mapping[str, Any], nonce: str) -> Mapping[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        expected: dict[str, Any] = {
            "iss": {"essential": True, "values": _spellings(self._settings.issuer)},
            "aud": {"essential": True, "value": self._settings.client_id},
            "nonce": {"essential": True, "value": nonce},
            "exp": {"essential": True},
        }
        try:
            found = jwt.decode(token, KeySet.import_key_set(keys), algorithms=list(ALGORITHMS))  # type: ignore[arg-type]
            jwt.JWTClaimsRegistry(now=lambda: int(self._now()), leeway=60, **expected).validate(found.claims)
        except (JoseError, ValueError, KeyError) as problem:
            raise LoginRefused(f"the provider's ID token is not valid: {problem}") from None
        return found.claims

    async def _fetch(self, method: str, url: str, form: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        """JSON of the provider. Only its configured host and port are opened."""
        import httpx2

        transport = self._http.library_transport(configured=self._settings.issuer)
        try:
            async with httpx2.AsyncClient(transport=transport, trust_env=False, timeout=30.0) as client:
                answer: httpx2.Response = await client.request(method, url, data=form)
                value = answer.raise_for_status().json()
        except (httpx2.HTTPError, ToolError, ValueError, OSError) as problem:
            raise LoginRefused(
                f"the provider could not be reached: {type(problem).__name__}: {problem}"[:300]
            ) from None
        if not isinstance(value, dict):
            raise LoginRefused("the provider's answer is no JSON object")
        return value


def find_principal(claims: Mapping[str, Any], settings: OidcSettings) -> Principal:
    """The user, with the highest role of their groups. Raises LoginRefused for one without."""
    user = claims.get(settings.user_claim) or claims.get("sub")
    groups = claims.get(settings.groups_claim) or ()
    held = [settings.roles[each] for each in groups if isinstance(each, str) and each in settings.roles]
    if not isinstance(user, str) or not held:
        raise LoginRefused("none of your groups has a role here; serve.oidc.roles says which have one")
    return Principal(user=user[:200], role=max(held, key=list(Role).index))


def person_scopes(role: Role) -> frozenset[AccessScope]:
    """A person who may make calls may approve them, too: no agent holds a browser's session."""
    scopes = ROLE_SCOPES[role]
    return scopes | {AccessScope.APPROVE} if AccessScope.CALL in scopes else scopes


def read_oidc(table: Mapping[str, Any], reveal: Callable[[str], str]) -> OidcSettings | None:
    """From `serve.oidc`; None if it is empty. Raises ConfigError."""
    if not table:
        return None
    roles = {group: Role(role) for group, role in table["roles"].items()}
    more = {name: table[name] for name in ("user_claim", "groups_claim", "scope") if name in table}
    return OidcSettings(
        issuer=table["issuer"],
        client_id=table["client_id"],
        client_secret=reveal(table["client_secret"]),
        roles=roles,
        **more,
    )


def _spellings(issuer: str) -> list[str]:
    bare = issuer.rstrip("/")
    return [bare, f"{bare}/"]


def _callback_url(request: Request) -> str:
    return f"{str(request.base_url).rstrip('/')}{CALLBACK}"


def _refuse(refusal: LoginRefused) -> Response:
    return PlainTextResponse(f"Login refused: {refusal}\n", 403, security_headers())
