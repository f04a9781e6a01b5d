"""Bearer tokens and browser sessions: user, role, scopes and toolset.

Tokens are stored and looked up by their digests: neither a response nor its delay reveals how close a guess was. A
token that is configured twice or could be guessed is refused at start.
"""

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from toolreeve.core.call import LOCAL, Principal, Role
from toolreeve.core.errors import ConfigError
from toolreeve.record.credentials import LINK, SESSION, TOKEN, StoredCredential, digest_of

SHORTEST = 16
_REFERENCE = re.compile(r"\$\{secret:[A-Za-z_][A-Za-z0-9_]*\}")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_SCHEME = b"bearer "
_ROLES = ", ".join(role.value for role in Role)
_MAKE_ONE = "make one with: openssl rand -hex 32"

Reveal = Callable[[str], str]
"""Resolves a reference such as `${secret:NAME}`. Raises ConfigError if it cannot be resolved."""


class AccessScope(StrEnum):
    """What a credential may do. Agents hold `call` without `approve`: no agent answers its own questions. `metrics` is
    for a collector: it counts the calls of everybody, and names nobody."""

    READ = "read"
    CALL = "call"
    APPROVE = "approve"
    MANAGE = "manage"
    METRICS = "metrics"


ALL_SCOPES = frozenset(AccessScope)
ROLE_SCOPES: Mapping[Role, frozenset[AccessScope]] = {
    Role.VIEWER: frozenset({AccessScope.READ}),
    Role.OPERATOR: frozenset({AccessScope.READ, AccessScope.CALL}),
    Role.ADMIN: ALL_SCOPES,
}
"""The scopes of a token that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """The identity of a request. `id` names the token without revealing it; no `tools` means all of the door's. A
    browser sends its own along with every request, so that changes need `csrf` as well. `expires` is a time."""

    id: str
    principal: Principal
    tools: tuple[str, ...] = ()
    scopes: frozenset[AccessScope] = ROLE_SCOPES[Role.VIEWER]
    csrf: str = field(default="", repr=False)
    expires: float | None = None

    @property
    def channel(self) -> str:
        """What answers given with it are recorded as."""
        return "console" if self.csrf else "rest"

    @property
    def sees_all(self) -> bool:
        """Whether it may read about the calls of everybody, with their arguments."""
        return bool(self.scopes & {AccessScope.APPROVE, AccessScope.MANAGE})


ANONYMOUS = Credential(id="", principal=LOCAL, scopes=ROLE_SCOPES[LOCAL.role])


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    digest: bytes
    credential: Credential


class Tokens:
    """The accepted tokens: those of the configuration, and those stored since. As long as there were none, no token is
    required: revoking the last one does not open the server.

    A browser session is accepted in addition; it does not make tokens required.
    """

    def __init__(self, tokens: Sequence[Token] = (), now: Callable[[], float] = time.time) -> None:
        self._configured = {token.digest: token.credential for token in tokens}
        self._stored: dict[bytes, Credential] = {}
        self._sessions: dict[bytes, Credential] = {}
        self._now = now
        self._required = bool(self._configured)
        self.version = 0
        """Another one whenever other credentials are accepted: what was concluded from them holds no longer."""
        self.changed: list[Callable[[], None]] = []
        """Called whenever other credentials are accepted: what is open in the name of a revoked one ends."""
        self.ended: set[str] = set()
        """The ids of credentials that were accepted, and have been revoked or have expired."""

    def __bool__(self) -> bool:
        return self._required

    def credentials(self) -> Sequence[Credential]:
        return [*self._configured.values(), *self._stored.values()] or [ANONYMOUS]

    def find(self, authorization: bytes) -> Credential | None:
        """The credential of an Authorization header."""
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            return None
        shown = hashlib.sha256(authorization[len(_SCHEME) :].strip()).digest()
        return self._valid(self._configured.get(shown) or self._stored.get(shown))

    def find_session(self, cookie: bytes) -> Credential | None:
        """The credential of a browser's cookie, with the CSRF token that belongs to it."""
        found = self._valid(self._sessions.get(hashlib.sha256(cookie).digest()))
        return None if found is None else replace(found, csrf=csrf_token(cookie))

    def valid_ids(self) -> frozenset[str]:
        """Of all that are accepted now; the anonymous one's while no token is required."""
        known = (*self._sessions.values(), *self._configured.values(), *self._stored.values())
        valid = frozenset(each.id for each in known if self._valid(each) is not None)
        return valid if self else valid | {ANONYMOUS.id}

    def replace_stored(self, rows: Iterable[StoredCredential]) -> None:
        """Accept exactly these besides the configured ones; a token made with another one only as long as that one."""
        stored: dict[str, dict[bytes, Credential]] = {TOKEN: {}, SESSION: {}, LINK: {}}
        known = {each.id: each for each in rows}
        for row in known.values():
            stored[row.kind][row.digest] = credential_of(row)
        self._required = self._required or bool(stored[TOKEN])
        makers = {each.id for each in self._configured.values()} | known.keys()
        stored[TOKEN] = {key: each for key, each in stored[TOKEN].items() if makers.issuperset(makers_of(each.id))}
        if (self._stored, self._sessions) == (stored[TOKEN], stored[SESSION]):
            return
        self.version += 1
        before = {each.id for each in (*self._stored.values(), *self._sessions.values())}
        self._stored = stored[TOKEN]
        self._sessions = stored[SESSION]
        self.ended |= before - self.valid_ids()
        for tell in self.changed:
            tell()

    def _valid(self, found: Credential | None) -> Credential | None:
        if found is None or (found.expires is not None and found.expires <= self._now()):
            return None
        return found


def makers_of(number: str) -> Sequence[str]:
    """The tokens that one was made with, which its id names: that of `a.b.c` with `a.b`, and that with `a`."""
    parts = number.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def csrf_token(cookie: bytes) -> str:
    """A page that cannot read the cookie cannot compute it."""
    return hashlib.sha256(b"toolreeve csrf\0" + cookie).hexdigest()[:32]


def credential_of(row: StoredCredential) -> Credential:
    return Credential(
        id=row.id,
        principal=Principal(user=row.user, role=Role(row.role)),
        tools=row.tools,
        scopes=frozenset(map(AccessScope, row.scopes)),
        expires=row.expires,
    )


def new_stored(
    secret: str,
    *,
    kind: str,
    user: str,
    role: Role,
    now: float,
    name: str = "",
    scopes: Collection[AccessScope] = (),
    tools: Sequence[str] = (),
    expires: float | None = None,
    maker: str = "",
) -> StoredCredential:
    """Without `scopes`, those of the role. `maker` is the id of the token that makes it, which it does not outlive."""
    number = secrets.token_hex(6)
    return StoredCredential(
        id=f"{maker}.{number}" if maker else number,
        kind=kind,
        digest=digest_of(secret),
        name=name,
        user=user,
        role=role.value,
        scopes=tuple(sorted(scopes or ROLE_SCOPES[role])),
        tools=tuple(tools),
        created=now,
        expires=expires,
    )


def read_tokens(tables: Sequence[Mapping[str, Any]], reveal: Reveal, source: str = "serve.tokens") -> Tokens:
    """From tables of `token` (`${secret:NAME}`) or `sha256`, with `user`, `role` (default: viewer) and `tools`.

    Raises ConfigError.
    """
    tokens = [_read(table, reveal, f"{source}[{number}]") for number, table in enumerate(tables)]
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError("the same token is configured twice", source=source, fix=f"one token per entry; {_MAKE_ONE}")
    return Tokens(tokens)


def _read(table: Mapping[str, Any], reveal: Reveal, source: str) -> Token:
    digest = _digest(table, reveal, source)
    user = table.get("user")
    if not isinstance(user, str) or not user.strip():
        raise ConfigError("the token has no user", source=source, key="user", fix='user = "ada"')
    role = _role(table.get("role", Role.VIEWER.value), source)
    credential = Credential(
        id=digest.hex()[:16],
        principal=Principal(user=user, role=role),
        tools=tuple(table.get("tools", ())),
        scopes=frozenset(map(AccessScope, table.get("scopes", ()))) or ROLE_SCOPES[role],
    )
    return Token(digest=digest, credential=credential)


def _digest(table: Mapping[str, Any], reveal: Reveal, source: str) -> bytes:
    token = table.get("token")
    digest = table.get("sha256")
    if (token is None) == (digest is None):
        fix = 'token = "${secret:NAME}", or sha256 = "..." from: printf %s TOKEN | sha256sum'
        raise ConfigError("set either token or sha256", source=source, fix=fix)
    if token is not None:
        return hashlib.sha256(_find(token, reveal, source).encode()).digest()
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ConfigError("not a SHA-256 in hexadecimal", source=source, key="sha256", fix="64 hexadecimal digits")
    return bytes.fromhex(digest)


def _find(reference: Any, reveal: Reveal, source: str) -> str:
    if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        fix = 'store it as a secret and write token = "${secret:NAME}"'
        raise ConfigError("a token must not be written in plain text", source=source, key="token", fix=fix)
    token = reveal(reference).strip()
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
        problem = f"a token needs at least {SHORTEST} visible ASCII characters"
        raise ConfigError(problem, source=source, key="token", fix=_MAKE_ONE)
    return token


def _role(role: Any, source: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise ConfigError(f"unknown role {role!r}", source=source, key="role", fix=f"one of {_ROLES}") from None
