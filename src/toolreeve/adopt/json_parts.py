"""Where in a JSON object's text is each of its parts, and which comments belong to it? Read only.

A comment belongs to the part that it stands directly above, whose line it ends or inside which it stands. One that a
blank line sets apart, or that ends the line of the opening bracket, belongs to no part.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from toolreeve.config.jsonc import Member, Object

_WORD = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\n]*|/\*.*?\*/|,', re.DOTALL)


class Span(NamedTuple):
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPart:
    """A key with its value and what belongs to it. `lead` is where the comments directly above begin, the key itself if
    there are none; `tail` are those that end its line, `comma` is where the one behind it stands."""

    member: Member
    lead: int
    comma: int | None
    tail: tuple[Span, ...]


def parts(text: str, around: Object) -> tuple[ObjectPart, ...]:
    members = around.members
    edges = [around.start + 1, *(member.node.end for member in members)]
    starts = [*(member.start for member in members), around.end - 1]
    gaps = [_Gap(text, edge, start) for edge, start in zip(edges, starts, strict=True)]
    return tuple(
        ObjectPart(
            member=member,
            lead=before.lead,
            comma=after.comma,
            tail=after.tail(is_last=member is members[-1]),
        )
        for member, before, after in zip(members, gaps[:-1], gaps[1:], strict=True)
    )


def comments(text: str, start: int, end: int) -> tuple[Span, ...]:
    return tuple(span for span in _words(text, start, end) if text[span.start] == "/")


def _words(text: str, start: int, end: int) -> Iterator[Span]:
    """The strings, comments and commas; a comment goes to the end of its line and no further."""
    for found in _WORD.finditer(text, start, end):
        is_line = found[0].startswith("//") and found[0].endswith("\r")
        yield Span(found.start(), found.end() - is_line)


class _Gap:
    """What stands between two parts, or a part and a bracket: blanks, comments and at most one comma."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text, self._end = text, end
        words = list(_words(text, start, end))
        self.comma = next((word.start for word in words if text[word.start] == ","), None)
        self._comments = [word for word in words if text[word.start] == "/"]
        self._behind = start if self.comma is None else self.comma + 1
        line_end = text.find("\n", start, end)
        self._ends_line = line_end >= 0
        self._first_line = [word for word in self._comments if not self._ends_line or word.start < line_end]

    def tail(self, *, is_last: bool) -> tuple[Span, ...]:
        """The comments that end the line of the part before. On a line with the next part, what stands behind the comma
        is about that one."""
        if self._ends_line or is_last:
            return tuple(self._first_line)
        return tuple(word for word in self._first_line if word.start < self._behind)

    @property
    def lead(self) -> int:
        """Where the comments directly above the part behind begin."""
        lead = self._end
        taken = set(self._first_line) if self._ends_line else set()
        for word in reversed(self._comments):
            if word.start < self._behind or word in taken or self._text[word.end : lead].count("\n") > 1:
                break
            lead = word.start
        return lead
