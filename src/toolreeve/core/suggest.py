"""Suggestions of similar names: the one "did you mean".

Bounded: only the first characters of a word are compared, so that a huge one costs nothing.
"""

from collections.abc import Iterable, Sequence
from typing import Any

COMPARED_CHARACTERS = 100


def find_similar(word: Any, known: Iterable[Any], *, limit: int = 3, cutoff: float = 0.6) -> list[str]:
    """The known names that resemble `word`, the most similar first. Whatever is not text resembles nothing."""
    if not isinstance(word, str):
        return []
    names = [name for name in known if isinstance(name, str)]
    from difflib import get_close_matches

    return get_close_matches(word[:COMPARED_CHARACTERS], names, n=limit, cutoff=cutoff)


def did_you_mean(similar: Sequence[str]) -> str:
    """`did you mean 'x'?`, or nothing."""
    return f"did you mean {', '.join(map(repr, similar))}?" if similar else ""


def hint_similar(word: Any, known: Iterable[Any]) -> str:
    """` (did you mean 'x'?)` for the most similar known name, to append to a message, or nothing."""
    similar = find_similar(word, known, limit=1)
    return f" ({did_you_mean(similar)})" if similar else ""
