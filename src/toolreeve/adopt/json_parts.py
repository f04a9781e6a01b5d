"""Locates the members of a JSON object and their comments.

A comment belongs to the member directly below it, the one whose line it ends, or the one it is inside of. A comment
that a blank line sets apart, or that ends the line of the opening bracket, belongs to none.
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
    """A member with its comments. `lead` is the start of the comments directly above, or of the key; `tail` are the
    comments that end its line; `comma` is the position of the comma after it."""

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
    """Strings, comments and commas; a line comment ends before its line end."""
    for found in _WORD.finditer(text, start, end):
        is_line = found[0].startswith("//") and found[0].endswith("\r")
        yield Span(found.start(), found.end() - is_line)


class _Gap:
    """The text between two members, or a member and a bracket: blanks, comments and at most one comma."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text = text
        self._end = end
        words = list(_words(text, start, end))
        self.comma = next((word.start for word in words if text[word.start] == ","), None)
        self._comments = [word for word in words if text[word.start] == "/"]
        self._behind = start if self.comma is None else self.comma + 1
        line_end = text.find("\n", start, end)
        self._ends_line = line_end >= 0
        self._first_line = [word for word in self._comments if not self._ends_line or word.start < line_end]

    def tail(self, *, is_last: bool) -> tuple[Span, ...]:
        """The comments that end the line of the member before. On a line with the next member, a comment after the
        comma belongs to that one."""
        if self._ends_line or is_last:
            return tuple(self._first_line)
        return tuple(word for word in self._first_line if word.start < self._behind)

    @property
    def lead(self) -> int:
        """The start of the comments directly above the next member."""
        lead = self._end
        taken = set(self._first_line) if self._ends_line else set()
        for word in reversed(self._comments):
            if word.start < self._behind or word in taken or self._text[word.end : lead].count("\n") > 1:
                break
            lead = word.start
        return lead
