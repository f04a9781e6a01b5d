"""Pool keys: sign the calls of a pool, and verify them.

With `hmac` the workers of a pool hold the key that signs; with `ed25519` they hold the public half only, and can verify
a call but never make one.
"""

import base64
import hashlib
import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolreeve.core.errors import ToolreeveError

HMAC = "hmac:"
PRIVATE = "ed25519:"
PUBLIC = "ed25519-public:"
KEY_BYTES = 32


class PoolKey(Protocol):
    def sign(self, message: bytes) -> bytes: ...

    def verifies(self, message: bytes, signature: bytes) -> bool: ...


@dataclass(frozen=True, slots=True, repr=False)
class HmacKey:
    secret: bytes

    def sign(self, message: bytes) -> bytes:
        return hmac.digest(self.secret, message, hashlib.sha256)

    def verifies(self, message: bytes, signature: bytes) -> bool:
        return hmac.compare_digest(self.sign(message), signature)


class Ed25519Key:
    """`seed` is None where only calls are verified."""

    def __init__(self, public: bytes | None, seed: bytes | None = None) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

        self._private = None if seed is None else Ed25519PrivateKey.from_private_bytes(seed)
        if self._private is not None:
            self._public = self._private.public_key()
        else:
            self._public = Ed25519PublicKey.from_public_bytes(public or b"")

    def sign(self, message: bytes) -> bytes:
        if self._private is None:
            raise ToolreeveError(f"a gateway signs calls: its pool key begins with {PRIVATE!r}, not with {PUBLIC!r}")
        return self._private.sign(message)

    def verifies(self, message: bytes, signature: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self._public.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    @property
    def public_text(self) -> str:
        return PUBLIC + base64.b64encode(self._public.public_bytes_raw()).decode()


def read_key(text: str) -> PoolKey:
    """Raises ToolreeveError; the message does not hold the key."""
    kind, _, encoded = text.strip().partition(":")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        raw = b""
    if kind + ":" not in (HMAC, PRIVATE, PUBLIC) or len(raw) != KEY_BYTES:
        raise ToolreeveError(
            f"not a pool key: {HMAC}, {PRIVATE} or {PUBLIC} and {KEY_BYTES} bytes in base64;"
            " make one with `toolreeve workers key`"
        )
    match kind + ":":
        case "hmac:":
            return HmacKey(raw)
        case "ed25519:":
            return Ed25519Key(None, raw)
        case _:
            return Ed25519Key(raw)


def new_key(kind: str) -> tuple[str, str]:
    """The key of the gateways, and that of the workers, which is the same for HMAC."""
    text = f"{kind}:{base64.b64encode(os.urandom(KEY_BYTES)).decode()}"
    key = read_key(text)
    return text, key.public_text if isinstance(key, Ed25519Key) else text


def is_signed(message: bytes, signature: bytes, keys: Sequence[PoolKey]) -> bool:
    return any(key.verifies(message, signature) for key in keys)
