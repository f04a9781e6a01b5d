"""Which values of an entry are secret though nobody says so? Those under telling names, and those that look like keys.

What is shown of a command line has a mark in their place. References stay as they are written: they give nothing away,
and a person must see what a server is given.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from toolreeve.core.secrets.patterns import is_secret_name
from toolreeve.core.secrets.token_patterns import SHAPES

SHORTEST = 8
"""Shorter values stand in too many ordinary texts to be blotted out of all that a server says."""

_LABELLED = re.compile(r"-*([A-Za-z][\w.-]*)\s*[=:]\s*(?!//)(.+)", re.DOTALL)
_SCHEME = re.compile(r"(?:basic|bearer|digest|token)\s+", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_QUERY = re.compile(r"[?&]([^\s=&#]+)=([^\s&#]+)")


def concealed(args: Sequence[str], *tables: Mapping[str, Any]) -> tuple[str, ...]:
    """The secrets among arguments and named values, as a server will get them."""
    found = [*_in_arguments(args)]
    for name, value in (item for table in tables for item in table.items()):
        if isinstance(value, str):
            found += [_bare(value)] if is_secret_name(name) and not value.startswith("/") else _in_text(value)
    return tuple(dict.fromkeys(each for each in found if len(each) >= SHORTEST and "${" not in each))


def concealed_in(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The secrets of an entry as it is written, references aside."""
    args, tables = entry.get("args"), (entry.get(key) for key in ("env", "headers", "oauth"))
    texts = [*map(str, args if isinstance(args, list) else ()), str(entry.get("url", ""))]
    return concealed(texts, *(table for table in tables if isinstance(table, Mapping)))


def veiled(args: Sequence[str]) -> list[str]:
    """The arguments as they may be shown."""
    return [without(arg, secrets) for arg, secrets in _each(args)]


def _in_arguments(args: Sequence[str]) -> Iterator[str]:
    for _, secrets in _each(args):
        yield from secrets


def _each(args: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each argument with the secrets in it; what follows an option of a telling name is one itself."""
    for before, arg in pairwise(("", *args)):
        follows = before.startswith("-") and "=" not in before and not arg.startswith("-")
        yield arg, [_bare(arg)] if follows and is_secret_name(before) else [*_in_text(arg)]


def _in_text(text: str) -> Iterator[str]:
    labelled = _LABELLED.fullmatch(text)
    if labelled and is_secret_name(labelled[1]):
        yield _bare(labelled[2])
    plain = text.encode("utf-8", "surrogatepass")
    yield from (found[0].decode("utf-8", "surrogatepass") for found in _shapes().finditer(plain))
    yield from (found[1] for found in _PASSWORD.finditer(text))
    yield from (found[2] for found in _QUERY.finditer(text) if is_secret_name(found[1]))


@cache
def _shapes() -> Any:
    """Compiled when the first server is read: most starts have none, and must be quick."""
    import re2

    return re2.compile(SHAPES)


def _bare(value: str) -> str:
    """The value without the scheme that may stand before it in a header."""
    return _SCHEME.sub("", value, count=1) if _SCHEME.match(value) else value


def without(text: str, secrets: Sequence[str]) -> str:
    """The text with a mark where a secret was."""
    from toolreeve.core.secrets.redactor import MARK

    for secret in secrets:
        if secret and "${" not in secret:
            text = text.replace(secret, MARK)
    return text
