"""Converts the comments of a client's file into TOML comments.

A comment is untrusted text: whatever it contains, it stays a comment, and hidden characters are made visible.
"""

import re
from collections.abc import Iterator, Sequence

_BLANKS = " \t\r"
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that TOML forbids in comments, and those that would disguise a line."""


def toml_lines(comments: Sequence[str]) -> tuple[str, ...]:
    """The TOML lines of these comments, which may be JSON or TOML comments."""
    return tuple(line for comment in comments for line in _lines(comment))


def _lines(comment: str) -> Iterator[str]:
    if comment.startswith("#"):
        yield _visible(comment)
        return
    inner = comment[2:-2] if comment.startswith("/*") else comment[2:]
    lines = [line.strip(_BLANKS) for line in inner.split("\n")]
    if len(lines) == 1:
        lines = [inner.removeprefix(" ").rstrip(_BLANKS)]
    filled = [index for index, line in enumerate(lines) if line]
    for line in lines[filled[0] : filled[-1] + 1] if filled else [""]:
        yield f"# {_visible(line)}" if line else "#"


def _visible(text: str) -> str:
    return _HIDDEN.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)
