"""Redactor: replaces registered secrets, labelled values and token-like text.

Everything runs in linear time. `suspects` is a cheap check of whole JSON documents: it may be wrong in one direction
only, so that a document it passes holds nothing that `value` would have replaced.
"""

import math
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import Any

import re2

from toolreeve.core.secrets import encodings
from toolreeve.core.secrets.patterns import FIRM, HINTS, LABELLED, is_secret_name, is_value
from toolreeve.core.secrets.spaced import SpacedForms
from toolreeve.core.secrets.token_patterns import SHAPES
from toolreeve.core.snapshot import HEAD, MAX_TEXT, digest, snapshot

MARK = "[redacted]"
_MARK = MARK.encode()
_MARGIN = 64 * 1024
_FEW = 20_000
_LONG = 1_000


def _roomy() -> Any:
    """Latin-1, so that invalid UTF-8 does not end a match; and enough memory."""
    options = re2.Options()
    options.max_mem = 256 * 1024 * 1024
    options.encoding = re2.Options.Encoding.LATIN1
    return options


@cache
def _shapes() -> Any:
    """Compiled when first needed: most runs redact nothing."""
    return re2.compile(SHAPES, _roomy())


@cache
def _labelled() -> Any:
    return re2.compile(LABELLED, _roomy())


_FIRM_GROUPS = 2 * len(FIRM)
_is_secret_name = lru_cache(maxsize=4096)(is_secret_name)


class Redactor:
    """Searches for `secrets` in all their `encodings`. Those below four characters would match everywhere and are
    ignored."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known: tuple[str, ...] = ()
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Redact these as well from now on."""
        known = [secret for secret in dict.fromkeys((*self._known, *secrets)) if len(secret) >= encodings.SHORTEST]
        if self._known and len(known) == len(self._known):
            return
        self._known = tuple(known)
        forms = sorted({form for secret in known for form in encodings.forms(secret)}, key=len, reverse=True)
        self._reach = _MARGIN + max(map(len, forms), default=0)
        self._registered = _Registered(forms)
        hints = {encodings.hint(form) for form in forms}
        self._hint = _Hint(hints)
        self._spaced = SpacedForms(known)

    def suspects(self, document: bytes) -> bool:
        """Whether a JSON document might hold something to redact."""
        return bool(self._hint(document)) or self._spaced.finds(document)

    def text(self, text: str) -> str:
        """The text with secrets redacted."""
        plain = text.encode("utf-8", "surrogatepass")
        if self.suspects(plain):
            return self._replace(plain).decode("utf-8", "surrogatepass")
        return text

    def knows(self, text: str) -> bool:
        """Whether the text holds a registered secret in any encoding, or a token of a known shape. Unlike redaction,
        this does not suspect whatever stands after a word such as password."""
        plain = text.encode("utf-8", "surrogatepass")
        if not self.suspects(plain):
            return False
        return self._without_registered(plain) != plain or _shapes().search(plain) is not None

    def value(self, value: Any) -> Any:
        """Any value as it may be shown: redacted, long texts cut, bounded in depth and number."""
        return self._clean(snapshot(value))

    def _clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value) if len(value) <= MAX_TEXT else self._cut(value)
        if isinstance(value, dict):
            return {self.text(key[:MAX_TEXT]): self._under(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._clean(item) for item in value]
        return value if value is None or isinstance(value, bool) else self._number(value)

    def _number(self, value: int | float) -> int | float | str:
        if isinstance(value, int) and value.bit_length() > 64:
            return f"<integer of {value.bit_length()} bits>"
        written = repr(value)
        if self._registered.sub(plain := written.encode()) != plain:
            return MARK
        return value if math.isfinite(value) else written

    def _under(self, key: str, value: Any) -> Any:
        if value is None or value == "" or isinstance(value, bool) or not _is_secret_name(key[:MAX_TEXT]):
            return self._clean(value)
        return MARK

    def _cut(self, text: str) -> dict[str, Any]:
        """Head and length; a digest too, unless it would help to guess a secret inside."""
        plain = text.encode("utf-8", "surrogatepass")
        if self._finds(plain):
            return {"cut": self.text(text[: HEAD + self._reach])[:HEAD], "length": len(text)}
        return {"cut": text[:HEAD], "length": len(text), "sha256": digest(plain)}

    def _finds(self, plain: bytes) -> bool:
        return self.suspects(plain) and self._replace(plain) != plain

    def _replace(self, plain: bytes) -> bytes:
        return _without_labelled(_shapes().sub(_MARK, self._without_registered(plain)))

    def _without_registered(self, plain: bytes) -> bytes:
        return self._spaced.sub(_MARK, self._registered.sub(plain))


def _without_labelled(plain: bytes) -> bytes:
    """Replaces the second group of the alternative that matched; of the loose ones, only what may be a value."""
    kept: list[bytes] = []
    place = 0
    for found in _labelled().finditer(plain):
        label = found.lastindex - 1
        start, end = found.span(label + 1)
        if label <= _FIRM_GROUPS or is_value(_shown(found[label]), _shown(found[label + 1])):
            kept += (plain[place:start], _MARK)
            place = end
    return b"".join((*kept, plain[place:])) if kept else plain


def _shown(part: bytes) -> str:
    return part.decode("utf-8", "replace")


class _Registered:
    """Replaces the forms of all secrets, longest first. An automaton of a form of many thousand bytes outgrows its
    memory and takes seconds: those are searched for one by one."""

    __slots__ = ("_long", "_short")

    def __init__(self, forms: list[bytes]) -> None:
        self._long = [form for form in forms if len(form) > _LONG]
        short = [re2.escape(form) for form in forms[len(self._long) :]]
        self._short = re2.compile(b"|".join(short), _roomy()) if short else None

    def sub(self, plain: bytes) -> bytes:
        for form in self._long:
            plain = plain.replace(form, _MARK)
        return plain if self._short is None else self._short.sub(_MARK, plain)


class _Hint:
    """Whether a document holds one of the hints. Built on first use: more secrets are often learnt before that."""

    __slots__ = ("_hints", "_search")

    def __init__(self, hints: set[bytes | None]) -> None:
        self._hints = hints
        self._search: Callable[[bytes], Any] | None = None

    def __call__(self, document: bytes) -> Any:
        if self._search is None:
            self._search = _always if None in self._hints else _search([hint for hint in self._hints if hint])
        return self._search(document)


def _always(_: bytes) -> bool:
    return True


def _search(hints: list[bytes]) -> Callable[[bytes], Any]:
    """A function that is true if a document holds one of the hints.

    An RE2 set takes half the time, but finds nothing once its automaton outgrows its memory. So it is used only while
    that cannot happen: every character of a hint adds about one state.
    """
    pattern = b"|".join([HINTS, *map(re2.escape, hints)])
    if sum(map(len, hints)) > _FEW:
        return re2.compile(pattern, _roomy()).search  # type: ignore[no-any-return]
    found = re2.Set.SearchSet(_roomy())
    found.Add(pattern)
    found.Compile()
    return found.Match  # type: ignore[no-any-return]
