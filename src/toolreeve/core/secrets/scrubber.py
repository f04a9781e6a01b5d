"""Scrubber: redacts given secret values from text, in any encoding.

For what a server or a script returns of its own secrets. Some secrets are only known after a login. Of those that are
renewed again and again, the latest are searched for.
"""

from collections import deque
from collections.abc import Iterable
from typing import Any

import orjson
import re2

from toolreeve.core.secrets import encodings
from toolreeve.core.secrets.redactor import MARK
from toolreeve.core.secrets.spaced import SpacedForms

MAX_LEARNT = 32
MAX_DEPTH = 260
"""Levels of nesting; what lies deeper can neither be searched nor be passed on."""


class Scrubber:
    """Redacts the given secrets and nothing else: all other text passes unchanged, and at no cost without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._given = frozenset(secrets)
        self._learnt: deque[str] = deque(maxlen=MAX_LEARNT)
        self._compile()

    def learn(self, secrets: Iterable[str]) -> None:
        """Redact these as well from now on."""
        new = [each for each in secrets if each not in self._given and each not in self._learnt]
        if new:
            self._learnt.extend(new)
            self._compile()

    def _compile(self) -> None:
        known = self._given.union(self._learnt)
        self._pattern = _compile(known)
        self._spaced = SpacedForms(known)

    def message(self, message: dict[str, Any]) -> dict[str, Any]:
        """The message without the secrets; the same object if it holds none."""
        if self._pattern is None or not self._finds(message):
            return message
        cleaned: dict[str, Any] = self._clean(message, 0)
        return cleaned

    def text(self, text: str, *, is_cut: bool = False) -> str:
        """The text without the secrets; if it `is_cut`, its end may be the beginning of one."""
        if self._pattern is None:
            return text
        plain = text.encode("utf-8", "surrogatepass")
        cleaned = self._spaced.sub(MARK.encode(), self._pattern.sub(MARK.encode(), plain))
        if is_cut:
            cleaned = _without_beginning(cleaned, _forms(self._given.union(self._learnt)))
        return text if cleaned == plain else cleaned.decode("utf-8", "replace")

    def _finds(self, message: dict[str, Any]) -> bool:
        try:
            encoded = orjson.dumps(message)
        except TypeError:
            return True
        return self._pattern is not None and (self._pattern.search(encoded) is not None or self._spaced.finds(encoded))

    def _clean(self, value: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            return MARK
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._clean(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean(item, depth + 1) for item in value]
        return value


def _forms(secrets: Iterable[str]) -> set[bytes]:
    searched = [secret for secret in secrets if len(secret) >= encodings.SHORTEST]
    return {form for secret in searched for form in encodings.forms(secret)}


def _without_beginning(text: bytes, forms: Iterable[bytes]) -> bytes:
    """Without the longest end that is the beginning of a form."""
    longest = 0
    for form in forms:
        for length in range(min(len(form) - 1, len(text)), longest, -1):
            if text.endswith(form[:length]):
                longest = length
                break
    return text[: len(text) - longest] + MARK.encode() if longest >= encodings.SHORTEST else text


def _compile(secrets: Iterable[str]) -> Any:
    """Matches each secret in each of its encodings; None without secrets."""
    forms = _forms(secrets)
    if not forms:
        return None
    longest_first = sorted(forms, key=len, reverse=True)
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(b"|".join(map(re2.escape, longest_first)), options)
