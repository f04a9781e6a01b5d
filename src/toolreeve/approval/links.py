"""Signed links to a question: expiring, and valid for one answer.

A link names the question and what was shown of it. Opening it shows the question; only a later, separate request that
carries the same token may decide, once.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass

from toolreeve.core import json

LONGEST = 1024
_VERSION = 1


class BadLink(Exception):
    """The link was altered, has expired or is not one of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkClaim:
    """What a valid link names. The digest belongs to one question, which is decided once: so the link works once."""

    question: str
    digest: str
    expires: float


class LinkSigner:
    """`key` is asked for when it is first needed; `lifetime` is how long a link is valid, in seconds."""

    def __init__(self, key: Callable[[], bytes], *, now: Callable[[], float], lifetime: float) -> None:
        self._find_key = key
        self._key: bytes | None = None
        self._now = now
        self.lifetime = lifetime

    def sign(self, question: str, digest: str) -> str:
        """The token of a link to the question."""
        body = json.dumps([_VERSION, question, digest, self._now() + self.lifetime])
        return f"{_encode(body)}.{_encode(self._sign(body))}"

    def verify(self, token: str) -> LinkClaim:
        """Raises BadLink."""
        if len(token) > LONGEST or not token.isascii():
            raise BadLink("this link is not valid")
        first, _, second = token.partition(".")
        body = _decode(first)
        if not hmac.compare_digest(self._sign(body), _decode(second)):
            raise BadLink("this link is not valid")
        version, question, digest, expires = json.loads(body)
        if version != _VERSION or expires <= self._now():
            raise BadLink("this link has expired")
        return LinkClaim(question=question, digest=digest, expires=expires)

    def _sign(self, body: bytes) -> bytes:
        if self._key is None:
            self._key = self._find_key()
        return hmac.new(self._key, b"toolreeve approval link\0" + body, hashlib.sha256).digest()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise BadLink("this link is not valid") from None
    if _encode(found) != text:
        raise BadLink("this link is not valid")
    return found
