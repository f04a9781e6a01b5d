"""Splits TOML text into statements, and assigns comments to tables.

A comment belongs to the table that it is directly above, directly below or inside of; one that touches the next
statement belongs to that, and one between blank lines to none.
"""

import itertools
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from toolreeve.config.jsonc import BOM

Path = tuple[str, ...]
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_PART = re.compile(_KEY)
_TABLE = re.compile(rf"[ \t]*(\[{{1,2}})[ \t]*({_KEYS})[ \t]*\]")
_PAIR = re.compile(rf"[ \t]*({_KEYS})[ \t]*=")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})'
    r'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]',
    re.DOTALL,
)
ITEM = "[]"
"""Any item of an array of tables, in the paths of its contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One line with its end, or several if a value spans them. `path` is the full path of its table or key; blank and
    comment lines have none."""

    text: str
    kind: Literal["blank", "comment", "table", "pair"]
    path: Path = ()
    comments: tuple[str, ...] = ()

    @property
    def has_content(self) -> bool:
        return self.kind in ("table", "pair")


def statements(text: str) -> Iterator[Statement]:
    """The text must be valid TOML. Joined, the statements are the text without its byte order mark."""
    at = len(text) - len(text.removeprefix(BOM))
    table: Path = ()
    while at < len(text):
        end, comments = _end(text, at)
        statement = _statement(text[at:end], table, comments)
        table = statement.path if statement.kind == "table" else table
        at = end
        yield statement


def _end(text: str, at: int) -> tuple[int, tuple[str, ...]]:
    """The end of the statement that begins here, and its comments."""
    depth = 0
    comments: list[str] = []
    for found in _TOKEN.finditer(text, at):
        word = found[0]
        if word == "\n" and depth == 0:
            return found.end(), tuple(comments)
        if word.startswith("#"):
            comments.append(word.rstrip("\r"))
        depth += (word in ("[", "{")) - (word in ("]", "}"))
    return len(text), tuple(comments)


def _statement(text: str, table: Path, comments: tuple[str, ...]) -> Statement:
    if not text.strip():
        return Statement(text=text, kind="blank")
    if table_found := _TABLE.match(text):
        path = (*_path(table_found[2]), *([ITEM] if table_found[1] == "[[" else []))
        return Statement(text=text, kind="table", path=path, comments=comments)
    if pair := _PAIR.match(text):
        return Statement(text=text, kind="pair", path=(*table, *_path(pair[1])), comments=comments)
    return Statement(text=text, kind="comment", comments=comments)


def _path(written: str) -> Path:
    return tuple(_key(part) for part in _PART.findall(written))


def _key(part: str) -> str:
    return str(tomllib.loads(f"key = {part}")["key"]) if part[0] in "\"'" else part


def owners(found: Sequence[Statement], section: str, names: Sequence[str]) -> list[str | None]:
    """For each statement, which of these tables of the section it belongs to, if any."""
    owned: list[str | None] = [_owner(each, section, names) for each in found]
    ends = [-1, *(index for index, each in enumerate(found) if each.has_content), len(found)]
    for before, behind in itertools.pairwise(ends):
        first = owned[before] if before >= 0 else None
        last = owned[behind] if behind < len(found) else None
        between = range(before + 1, behind)
        if first is not None and first == last:
            above, below = list(between), []
        else:
            above = _touching(found, between) if first is not None else []
            below = _touching(found, between[::-1])
            # A comment that touches both belongs to what follows.
            above = [] if below and set(above) & set(below) and behind < len(found) else above
            below = below if last is not None else []
        for index in above:
            owned[index] = first
        for index in below:
            owned[index] = last
    return owned


def _owner(each: Statement, section: str, names: Sequence[str]) -> str | None:
    is_ours = each.has_content and len(each.path) > 1 and each.path[0] == section and each.path[1] in names
    return each.path[1] if is_ours else None


def _touching(found: Sequence[Statement], indices: Sequence[int]) -> list[int]:
    """The consecutive comments from here on, up to the first blank line."""
    return list(itertools.takewhile(lambda index: found[index].kind == "comment", indices))
