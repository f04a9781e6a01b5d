"""Whose request is this? A bearer token stands for a person, a role, and the tools that they may see.

Tokens are kept and compared as digests, each one on every request and in constant time: neither an answer nor its delay
tells how near a guess was. What is configured twice, or could be guessed, is refused at start.
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
"""Gives what a reference such as `${secret:NAME}` stands for. Raises ConfigError where it stands for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What a request showed to be let in. `id` names it without giving it away; no `tools` means all of the door's."""

    id: str
    principal: Principal
    tools: tuple[str, ...] = ()


ANONYMOUS = Credential(id="", principal=LOCAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    digest: bytes
    credential: Credential


class Tokens:
    """Those that open the door. Without any, everybody who reaches it comes in."""

    def __init__(self, tokens: Sequence[Token] = ()) -> None:
        self._tokens = tuple(tokens)

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def credentials(self) -> Sequence[Credential]:
        return [token.credential for token in self._tokens] or [ANONYMOUS]

    def find(self, authorization: bytes) -> Credential | None:
        """The credential that an Authorization header shows."""
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            return None
        shown = hashlib.sha256(authorization[len(_SCHEME) :].strip()).digest()
        found = [token.credential for token in self._tokens if hmac.compare_digest(token.digest, shown)]
        return found[0] if found else None


def read_tokens(tables: Sequence[Mapping[str, Any]], reveal: Reveal, source: str = "serve.tokens") -> Tokens:
    """From tables of `token` (`${secret:NAME}`) or `sha256`, with `user`, `role` (viewer if not said) and `tools`.

    Raises ConfigError.
    """
    tokens = [_read(table, reveal, f"{source}[{number}]") for number, table in enumerate(tables)]
    if len({token.digest for token in tokens}) < len(tokens):
        raise ConfigError("the same token stands there twice", source=source, fix=f"give each its own; {_MAKE_ONE}")
    return Tokens(tokens)


def _read(table: Mapping[str, Any], reveal: Reveal, source: str) -> Token:
    digest = _digest(table, reveal, source)
    user = table.get("user")
    if not isinstance(user, str) or not user.strip():
        raise ConfigError("it does not say whose token it is", source=source, key="user", fix='user = "somebody"')
    credential = Credential(
        id=digest.hex()[:16],
        principal=Principal(user=user, role=_role(table.get("role", Role.VIEWER.value), source)),
        tools=tuple(table.get("tools", ())),
    )
    return Token(digest=digest, credential=credential)


def _digest(table: Mapping[str, Any], reveal: Reveal, source: str) -> bytes:
    token, digest = table.get("token"), table.get("sha256")
    if (token is None) == (digest is None):
        fix = 'token = "${secret:NAME}", or sha256 = "..." from: printf %s TOKEN | sha256sum'
        raise ConfigError("give either a token or its sha256", source=source, fix=fix)
    if token is not None:
        return hashlib.sha256(_find(token, reveal, source).encode()).digest()
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ConfigError("this is no SHA-256 in hexadecimal", source=source, key="sha256", fix="it has 64 digits")
    return bytes.fromhex(digest)


def _find(reference: Any, reveal: Reveal, source: str) -> str:
    if not isinstance(reference, str) or not _REFERENCE.fullmatch(reference):
        fix = 'keep it apart and write token = "${secret:NAME}"'
        raise ConfigError("a token is not written into a file of settings", source=source, key="token", fix=fix)
    token = reveal(reference).strip()
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable():
        problem = f"a token has at least {SHORTEST} visible ASCII characters"
        raise ConfigError(problem, source=source, key="token", fix=_MAKE_ONE)
    return token


def _role(role: Any, source: str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise ConfigError(f"there is no role {role!r}", source=source, key="role", fix=f"one of {_ROLES}") from None
