"""What must not come back from a server? The secrets that it was given, in whatever guise it says them."""

from collections.abc import Iterable
from typing import Any

import orjson
import re2

from toolreeve.record import disguise
from toolreeve.record.redact import MARK


class Veil:
    """Looks for the given secrets and nothing else: all other answers pass unharmed, and at no cost without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= disguise.SHORTEST for form in disguise.forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        self._secrets = re2.compile(b"|".join(map(re2.escape, longest_first)), options) if forms else None

    def over(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer without the secrets; the very same object if there is none in it."""
        if self._secrets is None or not self._finds(answer):
            return answer
        cleaned: dict[str, Any] = self._clean(answer)
        return cleaned

    def text(self, text: str) -> str:
        if self._secrets is None:
            return text
        plain = text.encode("utf-8", "surrogatepass")
        cleaned: bytes = self._secrets.sub(MARK.encode(), plain)
        return text if cleaned == plain else cleaned.decode("utf-8", "replace")

    def _finds(self, answer: dict[str, Any]) -> bool:
        try:
            written = orjson.dumps(answer)
        except TypeError:
            return True
        return self._secrets is not None and self._secrets.search(written) is not None

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._clean(item) for key, item in value.items()}
        return [self._clean(item) for item in value] if isinstance(value, list) else value
