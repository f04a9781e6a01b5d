"""`requestState`: encrypted, authenticated and dated state that the client carries.

A returned token is untrusted until it is verified: unaltered, not expired, sent by its holder, with the request that it
was issued for. The reason of a refusal is not disclosed: it would help a forger.
"""

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolreeve.core import json
from toolreeve.core.atomic import create_private
from toolreeve.core.errors import ConfigError

LIFETIME = 600.0
LONGEST = 4 * 1024 * 1024
SHORTEST_KEY = 32
KEY_FILE = "mcp_state.key"
_VERSION = b"\x01"
_NONCE = 12
_NAME = 4


class BadState(Exception):
    """The token is forged, expired, or was issued to another holder or for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """The content of a token.

    Only `holder` may return it, with the request of which `request` is the digest. `binding` names the call that was
    asked about, or, with `approved_by`, the call that is already approved. `inner` is the state of an upstream server.
    `question` and `asked` say which approval was asked, and when; `session` is that of the request.
    """

    holder: str
    request: str
    binding: str = ""
    approved_by: str = ""
    inner: str | None = None
    question: str = ""
    asked: float = 0.0
    session: str = ""
    expires: float = 0.0
    nonce: str = field(default_factory=lambda: os.urandom(16).hex())

    @property
    def grants(self) -> bool:
        """Whether the token can carry an approval: such a token is valid once."""
        return bool(self.binding)


class Seal:
    """The first key seals, every key opens. To rotate, append the new key first, then move it to the front."""

    def __init__(self, keys: Sequence[bytes], *, now: Callable[[], float], lifetime: float = LIFETIME) -> None:
        if not keys:
            raise ValueError("a seal needs a key")
        self._keys = {_name(key): _derived(key) for key in keys}
        self._first = _name(keys[0])
        self._now = now
        self._lifetime = lifetime

    def close(self, state: RequestState) -> str:
        """The token of a state; its lifetime starts now."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        fields = asdict(state) | {"expires": self._now() + self._lifetime}
        head = _VERSION + self._first + os.urandom(_NONCE)
        sealed = AESGCM(self._keys[self._first]).encrypt(head[-_NONCE:], json.dumps(fields), head[:-_NONCE])
        return base64.urlsafe_b64encode(head + sealed).decode().rstrip("=")

    def open(self, token: Any, *, holder: str, request: str) -> RequestState:
        """Raises BadState."""
        state = _read(self._unsealed(token))
        if state.expires <= self._now():
            raise BadState("expired")
        if not hmac.compare_digest(state.holder, holder):
            raise BadState("issued to another holder")
        if not hmac.compare_digest(state.request, request):
            raise BadState("issued for another request")
        return state

    def _unsealed(self, token: Any) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        raw = _decoded(token)
        head = raw[: 1 + _NAME + _NONCE]
        sealed = raw[1 + _NAME + _NONCE :]
        key = self._keys.get(head[1 : 1 + _NAME])
        if key is None or head[:1] != _VERSION:
            raise BadState("unknown key or version")
        try:
            return AESGCM(key).decrypt(head[-_NONCE:], sealed, head[:-_NONCE])
        except (InvalidTag, ValueError):
            raise BadState("altered") from None


def _decoded(token: Any) -> bytes:
    """Accepts only the canonical encoding."""
    if not isinstance(token, str) or not 0 < len(token) <= LONGEST or not token.isascii():
        raise BadState("no token")
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise BadState("no token") from None
    if base64.urlsafe_b64encode(raw).decode().rstrip("=") != token:
        raise BadState("no token")
    return raw


def _read(raw: bytes) -> RequestState:
    try:
        fields: Mapping[str, Any] = json.loads(raw)
        return RequestState(**fields)
    except (TypeError, ValueError):
        raise BadState("of another release") from None


def _name(key: bytes) -> bytes:
    return hmac.digest(key, b"toolreeve state key name", hashlib.sha256)[:_NAME]


def _derived(key: bytes) -> bytes:
    return hmac.digest(key, b"toolreeve state key", hashlib.sha256)


def check_keys(keys: Sequence[str], *, source: str | Path) -> list[bytes]:
    """Raises ConfigError for a key that is too short."""
    for number, key in enumerate(keys, 1):
        if len(key) < SHORTEST_KEY:
            problem = f"key {number} has {len(key)} characters; at least {SHORTEST_KEY} are required"
            raise ConfigError(problem, source=source, fix="make one with: openssl rand -hex 32")
    return [key.encode() for key in keys]


def load_keys(directory: Path) -> list[bytes]:
    """The keys of the key file, one per line, newest first. A missing file is created, for all processes."""
    path = directory / KEY_FILE
    if not path.exists():
        _make(path)
    if path.stat().st_mode & 0o077:
        raise ConfigError("other users can read this key", source=path, fix="remove the file: a new one is created")
    keys = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    if not keys:
        raise ConfigError("the file holds no key", source=path, fix="remove the file: a new one is created")
    return check_keys(keys, source=path)


def _make(path: Path) -> None:
    with contextlib.suppress(FileExistsError):  # another process was faster: all read its key
        create_private(path, os.urandom(32).hex().encode() + b"\n")
