"""How does a comment of a client's file read in ours? As lines of TOML comment that say the same.

A comment is somebody else's text: whatever it holds, it stays a comment, and shows what it holds.
"""

import re
from collections.abc import Iterator, Sequence

_BLANKS = " \t\r"
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What TOML allows in no comment, and what would show a line as another than it is."""


def toml_lines(comments: Sequence[str]) -> tuple[str, ...]:
    """The lines that say what these comments say, which may be written as in JSON or in TOML."""
    return tuple(line for comment in comments for line in _lines(comment))


def _lines(comment: str) -> Iterator[str]:
    if comment.startswith("#"):
        yield _seen(comment)
        return
    inner = comment[2:-2] if comment.startswith("/*") else comment[2:]
    lines = [line.strip(_BLANKS) for line in inner.split("\n")]
    lines = lines if len(lines) > 1 else [inner.removeprefix(" ").rstrip(_BLANKS)]
    said = [index for index, line in enumerate(lines) if line]
    for line in lines[said[0] : said[-1] + 1] if said else [""]:
        yield f"# {_seen(line)}" if line else "#"


def _seen(text: str) -> str:
    return _HIDDEN.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)
