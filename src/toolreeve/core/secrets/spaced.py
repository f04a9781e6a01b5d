"""Spaced encodings of a secret: base64 in lines, hexadecimal in groups.

What stands between the characters is taken out before the search, so that the search is for the same text however it
was grouped. Byte order, octal and decimal dumps are not recognised.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import re2

from toolreeve.core.secrets import encodings

_BREAK = rb"(?:\s|\\+[nrt])+"
_DUMP = rb"(?:[ \t]{2,}(?:[|][^\n]{0,16}[|]|[^\n]{1,16}))?(?:\n|\\+n)[0-9a-fA-F]{6,8}:?[ \t]+"
"""The characters after the bytes of a line, and the offset before those of the next, as xxd and hexdump print them."""
_GAP = rb"(?:[\s:,;_%-]|\\+[nrtx]|0[xX])+"
_DUMP_GAP = rb"(?:" + _DUMP + rb"|[\s:,-])+"
_WRAPPED = rb"[A-Za-z0-9+/_-]{16,}(?:" + _BREAK + rb"[A-Za-z0-9+/_-]+)+"
_GROUPED = rb"[0-9a-fA-F](?:(?:%s)?[0-9a-fA-F]){11,}"


def _compile(pattern: bytes, *, ignore_case: bool = False, megabytes: int = 8) -> Any:
    """Linear in the text, whatever it says. `megabytes` bound what the expression and its automaton may take."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = not ignore_case
    options.max_mem = megabytes << 20
    return re2.compile(pattern, options)


class SpacedForms:
    """Finds registered secrets whose base64 or hexadecimal form is broken up."""

    def __init__(self, secrets: Iterable[str]) -> None:
        plain = [each.encode("utf-8", "surrogatepass") for each in secrets if len(each) >= encodings.SHORTEST_ENCODED]
        self._plain = plain
        self._searches: tuple[_Search, ...] | None = None

    def finds(self, text: bytes) -> bool:
        return any(True for search in self._all() for _ in search.spans(text))

    def sub(self, mark: bytes, text: bytes) -> bytes:
        """The text with the mark in the place of each secret."""
        for search in self._all():
            kept: list[bytes] = []
            done = 0
            for start, end in search.spans(text):
                kept += (text[done:start], mark)
                done = end
            text = b"".join((*kept, text[done:]))
        return text

    def _all(self) -> "tuple[_Search, ...]":
        """Built on first use: more secrets are often learnt before that."""
        if self._searches is None:
            base64 = {form for secret in self._plain for form in encodings.in_base64(secret)}
            hexadecimal = {secret.hex().encode() for secret in self._plain}
            wrapped = _Search(_WRAPPED, _BREAK, base64, ignore_case=False)
            grouped = _Search(_GROUPED % _GAP, _GAP, hexadecimal, ignore_case=True)
            dumped = _Search(_GROUPED % _DUMP_GAP, _DUMP_GAP, hexadecimal, ignore_case=True)
            self._searches = (wrapped, grouped, dumped) if self._plain else ()
        return self._searches


class _Search:
    """`run` matches what may be an encoded text; `gap` is what stands between its characters."""

    def __init__(self, run: bytes, gap: bytes, forms: set[bytes], *, ignore_case: bool) -> None:
        self._run = _compile(run)
        self._gap = re.compile(gap)
        longest_first = sorted(forms, key=len, reverse=True)
        self._forms = _compile(b"|".join(map(re2.escape, longest_first)), ignore_case=ignore_case, megabytes=256)

    def spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Where the secrets are."""
        for run in self._run.finditer(text):
            if self._forms.search(self._gap.sub(b"", run[0])) is not None:
                yield from self._within(run[0], run.start())

    def _within(self, run: bytes, offset: int) -> Iterator[tuple[int, int]]:
        places: list[int] = []
        start = 0
        for gap in self._gap.finditer(run):
            places.extend(range(start, gap.start()))
            start = gap.end()
        places.extend(range(start, len(run)))
        for found in self._forms.finditer(bytes(run[place] for place in places)):
            yield offset + places[found.start()], offset + places[found.end() - 1] + 1
