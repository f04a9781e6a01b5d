"""Scrubber: redacts given secret values from text, in any encoding, and nothing else.

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

MOST_LEARNT = 32
DEEPEST = 260
"""Levels of nesting; what lies deeper can neither be searched nor be passed on."""


class Scrubber:
    """Looks for the given secrets and nothing else: all other words pass unharmed, and at no cost without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._given = frozenset(secrets)
        self._learnt: deque[str] = deque(maxlen=MOST_LEARNT)
        self._secrets = _any_of(self._given)

    def learn(self, secrets: Iterable[str]) -> None:
        """Look for these as well from now on."""
        new = [each for each in secrets if each not in self._given and each not in self._learnt]
        if new:
            self._learnt.extend(new)
            self._secrets = _any_of(self._given.union(self._learnt))

    def over(self, said: dict[str, Any]) -> dict[str, Any]:
        """What was said without the secrets; the very same object if there is none in it."""
        if self._secrets is None or not self._finds(said):
            return said
        cleaned: dict[str, Any] = self._clean(said, 0)
        return cleaned

    def text(self, text: str) -> str:
        if self._secrets is None:
            return text
        plain = text.encode("utf-8", "surrogatepass")
        cleaned: bytes = self._secrets.sub(MARK.encode(), plain)
        return text if cleaned == plain else cleaned.decode("utf-8", "replace")

    def _finds(self, said: dict[str, Any]) -> bool:
        try:
            written = orjson.dumps(said)
        except TypeError:
            return True
        return self._secrets is not None and self._secrets.search(written) is not None

    def _clean(self, value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            return MARK
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._clean(item, depth + 1) for key, item in value.items()}
        return [self._clean(item, depth + 1) for item in value] if isinstance(value, list) else value


def _any_of(secrets: Iterable[str]) -> Any:
    """What finds each of them in each of its guises; None where there are none."""
    forms = {form for secret in secrets if len(secret) >= encodings.SHORTEST for form in encodings.forms(secret)}
    longest_first = sorted(forms, key=len, reverse=True)
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(b"|".join(map(re2.escape, longest_first)), options) if forms else None
