"""Paths that a command prints, and how its reader can separate them.

A name may hold blanks and line ends: the pieces of `x /etc/shadow` lead elsewhere. Paths that end in NUL can be
separated, lines cannot: only the start of the first is certain.
"""

from enum import Enum, auto
from typing import NamedTuple


class Separator(Enum):
    WORDS = auto()
    """Fixed or plain text: its words, of which there may be none, are the paths."""
    NULS = auto()
    LINES = auto()


class PrintedPaths(NamedTuple):
    """`below`: the directories under which they lie. `flagless`: none begins with a dash."""

    below: tuple[str, ...]
    separator: Separator = Separator.LINES
    flagless: bool = False

    def through(self, filters: str, *, nuls: bool) -> "PrintedPaths | None":
        """What remains after a filter that passes on the `whole`, the `start`, or some `records`."""
        if filters == "whole" or self.separator is Separator.WORDS:
            return self
        if self.separator is Separator.NULS:
            return self if nuls else None
        return self if filters == "start" and not nuls else None


Printed = PrintedPaths | None
"""None: it may print anything."""

NOTHING = PrintedPaths((), Separator.WORDS)
