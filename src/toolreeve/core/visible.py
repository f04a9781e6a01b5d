"""Escaping of control and invisible characters in text shown to a person.

No part of a shown text may reorder, erase, colour or hide any other part.
"""

import itertools
import unicodedata

MAX_MARKS = 3
"""More combining marks than this on one letter cover its neighbours."""

_BLANK = frozenset(
    itertools.chain(
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180F, 0x2800, 0x3164, 0xFFA0, 0xFFFC),
        range(0x180B, 0x180E),
        range(0xFE00, 0xFE10),
        range(0xE0100, 0xE01F0),
    )
)
"""Characters that count as printable and show nothing."""


def visible(text: str) -> str:
    """The text with invisible characters except line feeds escaped, as in `‹U+202E›`."""
    if text.isascii() and text.isprintable():
        return text
    marks = 0
    shown: list[str] = []
    for character in text:
        is_mark = unicodedata.combining(character) != 0 or unicodedata.category(character) in ("Mn", "Me")
        marks = marks + 1 if is_mark else 0
        stands_alone = is_mark and (not shown or shown[-1][-1] in "\n› ")
        shown.append(_spelled(character, hidden=marks > MAX_MARKS or stands_alone))
    return "".join(shown)


def _spelled(character: str, *, hidden: bool) -> str:
    if character == "\n":
        return "\n"
    if character == "\t":
        return "⇥   "
    if hidden or not character.isprintable() or ord(character) in _BLANK:
        return f"‹U+{ord(character):04X}›"
    return character


def one_line(text: str) -> str:
    return visible(text).replace("\n", "⏎")
