"""Bearer tokens: each stands for a user, a role and a toolset.

Tokens are stored and compared as digests, all of them on every request and in constant time: neither a response nor its
delay reveals how close a guess was. A token that is configured twice or could be guessed is refused at start.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.core.call import LOCAL, Principal, Role
from toolreeve.core.errors import ConfigError

SHORTEST = 16
_REFERENCE = re.compile(r"\$\{secret:[A-Za-z_][A-Za-z0-9_]*\}")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_SCHEME = b"bearer "
_ROLES = ", ".join(role.value for role in Role)
_MAKE_ONE = "make one with: openssl rand -hex 32"

Reveal = Callable[[str], str]
"""Resolves a reference such as `${secret:NAME}`. Raises ConfigError if it cannot be resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """The identity of a request. `id` names the token without revealing it; no `tools` means all of the door's."""

    id: str
    principal: Principal
    tools: tuple[str, ...] = ()


ANONYMOUS = Credential(id="", principal=LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    digest: bytes
    credential: Credential


class Tokens:
    """The accepted tokens. Without any, no token is required."""

    def __init__(self, tokens: Sequence[Token] = ()) -> None:
        self._tokens = tuple(tokens)

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def credentials(self) -> Sequence[Credential]:
        return [token.credential for token in self._tokens] or [ANONYMOUS]

    def find(self, authorization: bytes) -> Credential | None:
        """The credential of an Authorization header."""
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            return None
        shown = hashlib.sha256(authorization[len(_SCHEME) :].strip()).digest()
        found = [token.credential for token in self._tokens if hmac.compare_digest(token.digest, shown)]
        return found[0] if found else None


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
    credential = Credential(
        id=digest.hex()[:16],
        principal=Principal(user=user, role=_role(table.get("role", Role.VIEWER.value), source)),
        tools=tuple(table.get("tools", ())),
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
