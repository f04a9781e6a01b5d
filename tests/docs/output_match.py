"""Compares output with what a page shows: `…` is any text in a line, or any lines."""

import re
from collections.abc import Sequence

WILDCARD = "…"
_ERASED = re.compile(r"[^\n]*\r\x1b\[K")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain(text: str) -> str:
    """The text without colours and with Unix line ends."""
    return _ESCAPE.sub("", _ERASED.sub("", text)).replace("\r\n", "\n")


def visible_lines(text: str) -> list[str]:
    """The lines without trailing blanks and without empty lines around them."""
    lines = "\n".join(line.rstrip() for line in plain(text).split("\n")).strip("\n")
    return lines.split("\n") if lines else []


def matches(printed: Sequence[str], actual: Sequence[str]) -> bool:
    pattern = "".join(_line_pattern(line) for line in printed)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in actual)) is not None


def _line_pattern(line: str) -> str:
    if line.strip() == WILDCARD:
        return r"(?:.*\n)*?"
    return ".*".join(re.escape(part) for part in line.split(WILDCARD)) + r"\n"
