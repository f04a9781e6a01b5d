"""Which secrets are a search's patterns aimed at? To read what it finds is then to read them.

A search for names alone tells no content, so nothing is alarmed here: the directories under which its finds lie get
the secrets beside them, and whoever reads the finds reads those.
"""

import re
from collections.abc import Iterable
from itertools import islice

from toolreeve.policy.shell.interpret.paths import resolve, targeted_secret

_ANYTHING = re.compile(r"(?:\\[wWsSdD]|(?<!\\)\.|\[[^]]{0,64}\])[*+]\??|(?<!\\)[*+?]")
_ONE = re.compile(r"(?<!\\)\.|\\[wWsSdD]")
_SYNTAX = re.compile(r"[\\()^$]")
_TELLING = re.compile(r"[^\W_]")
_BRACES = re.compile(r"(?P<before>[^{]*)\{(?P<inner>[^{}]*)\}(?P<after>.*)", re.DOTALL)
_MOST_CHOICES = 16
_MOST_SECRETS = 4


def targeted_secrets(patterns: Iterable[str]) -> list[str]:
    """The secrets that the patterns are aimed at; some of them alarm as much as all."""
    return list(
        dict.fromkeys(islice((name for pattern in patterns if (name := targeted_secret(pattern))), _MOST_SECRETS))
    )


def with_secrets(places: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    """The places, and in each of them the secrets of those names."""
    if not names:
        return places
    return (*places, *(resolve(name, place) for name in names for place in places))


def expand_braces(pattern: str) -> list[str]:
    """The patterns that braces stand for; of several braces the first, which is what there usually is."""
    found = _BRACES.fullmatch(pattern)
    if found is None:
        return [pattern]
    inner = found["inner"].split(",")[:_MOST_CHOICES]
    return [found["before"] + choice + found["after"] for choice in inner]


def globs_of(expression: str, *, anchored: bool) -> list[str]:
    """Globs that match about the same names as a regular expression: enough to tell what it is aimed at."""
    found = []
    for choice in expression.split("|")[:_MOST_CHOICES]:
        bare = choice.strip("()")
        text = _SYNTAX.sub("", _ONE.sub("?", _ANYTHING.sub("*", bare)))
        before = "" if anchored or bare.startswith("^") else "*"
        after = "" if anchored or bare.endswith("$") else "*"
        if _TELLING.search(text):
            found.append(f"{before}{text}{after}")
    return found
