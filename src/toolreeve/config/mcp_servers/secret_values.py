"""Finds undeclared secrets in a server entry, by name and token pattern.

They are redacted wherever a command line is shown. References stay as written: they reveal nothing, and a person must
see what a server gets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from toolreeve.core.secrets.patterns import is_secret_name
from toolreeve.core.secrets.token_patterns import SHAPES

MIN_LENGTH = 6
"""Shorter values occur in too many ordinary texts to be redacted from all that a server says."""
MIN_SHOWN = 4
"""Shorter values are shown in a configuration too."""

_LABELLED = re.compile(r"-*([A-Za-z][\w.-]*)\s*[=:]\s*(?!//)(.+)", re.DOTALL)
_SCHEME = re.compile(r"(?:basic|bearer|digest|token)\s+", re.IGNORECASE)
_CREDENTIAL = re.compile(r"(?:basic|bearer|digest)\s+(\S+)", re.IGNORECASE)
_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_QUERY = re.compile(r"[?&]([^\s=&#]+)=([^\s&#]+)")


def find_secrets(args: Sequence[str], *tables: Mapping[str, Any], shortest: int = MIN_LENGTH) -> tuple[str, ...]:
    """The secrets among arguments and named values, as the server gets them."""
    found = [secret for _, secrets in _each_argument(args) for secret in secrets]
    for table in tables:
        for name, value in table.items():
            if not isinstance(value, str):
                continue
            if is_secret_name(name) and not value.startswith("/"):
                found.append(_without_scheme(value))
            else:
                found += _in_text(value)
    return tuple(dict.fromkeys(each for each in found if len(each) >= shortest and "${" not in each))


def find_entry_secrets(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The secrets of an entry as written, without references, to be redacted where the entry is shown."""
    args = entry.get("args")
    tables = [entry.get(key) for key in ("env", "headers", "oauth")]
    texts = [*map(str, args if isinstance(args, list) else ()), str(entry.get("url", ""))]
    return find_secrets(texts, *(table for table in tables if isinstance(table, Mapping)), shortest=MIN_SHOWN)


def redact_arguments(args: Sequence[str]) -> list[str]:
    """The arguments, safe to show."""
    return [redact(arg, secrets) for arg, secrets in _each_argument(args)]


def _each_argument(args: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Each argument with the secrets in it; what follows an option like `--token` is one itself."""
    for before, arg in pairwise(("", *args)):
        follows = before.startswith("-") and "=" not in before and not arg.startswith("-")
        if follows and is_secret_name(before):
            yield arg, [_without_scheme(arg)]
        else:
            yield arg, list(_in_text(arg))


def _in_text(text: str) -> Iterator[str]:
    labelled = _LABELLED.fullmatch(text)
    if labelled and is_secret_name(labelled[1]):
        yield _without_scheme(labelled[2])
    elif credential := _CREDENTIAL.fullmatch(text):
        yield credential[1]
    plain = text.encode("utf-8", "surrogatepass")
    yield from (found[0].decode("utf-8", "surrogatepass") for found in _shapes().finditer(plain))
    yield from (found[1] for found in _PASSWORD.finditer(text))
    yield from (found[2] for found in _QUERY.finditer(text) if is_secret_name(found[1]))


@cache
def _shapes() -> Any:
    """Compiled when the first server is read: most runs have none, and must start fast."""
    import re2

    return re2.compile(SHAPES)


def _without_scheme(value: str) -> str:
    """Without an authentication scheme such as `Bearer`."""
    return _SCHEME.sub("", value, count=1) if _SCHEME.match(value) else value


def redact(text: str, secrets: Sequence[str]) -> str:
    """The text with a mark in place of each secret."""
    from toolreeve.core.secrets.redactor import MARK

    for secret in secrets:
        if secret and "${" not in secret:
            text = text.replace(secret, MARK)
    return text
