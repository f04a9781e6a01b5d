"""Which paths does a command print, and can they be told apart again by what reads them?

A name may hold blanks and line ends: the pieces of `x /etc/shadow` lead elsewhere. Paths that end in NUL can be told
apart, lines cannot: of those it is certain only where the first begins.
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
        """What is left of them behind a program that passes on the `whole`, the `start`, or some `records` of it."""
        if filters == "whole" or self.separator is Separator.WORDS:
            return self
        if self.separator is Separator.NULS:
            return self if nuls else None
        return self if filters == "start" and not nuls else None


Printed = PrintedPaths | None
"""None: it may print anything."""

NOTHING = PrintedPaths((), Separator.WORDS)
