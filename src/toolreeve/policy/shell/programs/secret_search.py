"""Searches whose patterns target secrets: reading the results reads secrets.

A search for names alone reveals no content, so it raises no alarm: the secrets are added to the paths that it prints,
and a command that reads those paths reads the secrets.
"""

import re
from collections.abc import Iterable
from itertools import islice

from toolreeve.policy.shell.interpret.paths import resolve, targeted_secret

_ANYTHING = re.compile(r"(?:\\[wWsSdD]|(?<!\\)\.|\[[^]]{0,64}\])[*+]\??|(?<!\\)[*+?]")
_ONE = re.compile(r"(?<!\\)\.|\\[wWsSdD]")
_SYNTAX = re.compile(r"[\\()^$]")
_LETTER = re.compile(r"[^\W_]")
_BRACES = re.compile(r"(?P<before>[^{]*)\{(?P<inner>[^{}]*)\}(?P<after>.*)", re.DOTALL)
_MOST_CHOICES = 16
_MOST_SECRETS = 4


def targeted_secrets(patterns: Iterable[str]) -> list[str]:
    """The secrets that the patterns target; a few of them are enough."""
    found = filter(None, map(targeted_secret, patterns))
    return list(dict.fromkeys(islice(found, _MOST_SECRETS)))


def with_secrets(directories: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    """The directories, and in each of them the secrets of those names."""
    if not names:
        return directories
    return (*directories, *(resolve(name, here) for name in names for here in directories))


def expand_braces(pattern: str) -> list[str]:
    """The patterns that braces stand for; only the first pair is expanded."""
    found = _BRACES.fullmatch(pattern)
    if found is None:
        return [pattern]
    inner = found["inner"].split(",")[:_MOST_CHOICES]
    return [found["before"] + choice + found["after"] for choice in inner]


def globs_of(expression: str, *, anchored: bool) -> list[str]:
    """Globs that match about the same names as a regular expression: enough to find what it targets."""
    found = []
    for choice in expression.split("|")[:_MOST_CHOICES]:
        bare = choice.strip("()")
        text = _SYNTAX.sub("", _ONE.sub("?", _ANYTHING.sub("*", bare)))
        before = "" if anchored or bare.startswith("^") else "*"
        after = "" if anchored or bare.endswith("$") else "*"
        if _LETTER.search(text):
            found.append(f"{before}{text}{after}")
    return found
