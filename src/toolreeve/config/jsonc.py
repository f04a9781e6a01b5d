"""JSON parser with comments, trailing commas and source positions.

Every value knows its span in the text, so that it can be replaced without touching the rest of the file.
A duplicate key is refused: two readers would see two different files.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolreeve.core.documents import Document, KeyPath
from toolreeve.core.errors import ConfigError

MAX_DEPTH = 100
BOM = "\ufeff"
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|true\b|false\b|null\b")


@dataclass(frozen=True, slots=True)
class Node:
    """A value in the text, from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    value: Any


@dataclass(frozen=True, slots=True)
class Array(Node):
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One key of an object; `start` is where the key begins."""

    key: str
    start: int
    node: Node


@dataclass(frozen=True, slots=True)
class Object(Node):
    members: tuple[Member, ...]

    def get(self, key: str) -> Member | None:
        return next((member for member in self.members if member.key == key), None)


def parse_jsonc(text: str, source: str) -> Node | None:
    """None for a file of only blanks and comments. Raises ConfigError with the line."""
    return _JsonParser(text, source).document()


def plain(node: Node | None) -> Any:
    match node:
        case Scalar():
            return node.value
        case Array():
            return [plain(item) for item in node.items]
        case Object():
            return {member.key: plain(member.node) for member in node.members}
    return None


def json_document(text: str, source: str) -> Document:
    node = parse_jsonc(text, source)
    return Document(source, plain(node), dict(_lines(node, text)))


def line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _lines(root: Node | None, text: str) -> Iterator[tuple[KeyPath, int]]:
    """Each key's line, found in one pass over the text."""
    line = 1
    position = 0
    for path, start in sorted(_positions(root, ()), key=lambda found: found[1]):
        line += text.count("\n", position, start)
        position = start
        yield path, line


def _positions(node: Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
    if node is not None and not path:
        yield (), node.start
    if isinstance(node, Object):
        for member in node.members:
            yield (*path, member.key), member.start
            yield from _positions(member.node, (*path, member.key))
    elif isinstance(node, Array):
        for index, item in enumerate(node.items):
            yield (*path, index), item.start
            yield from _positions(item, (*path, index))


class _JsonParser:
    def __init__(self, text: str, source: str) -> None:
        self._text = text
        self._source = source
        self._at = 1 if text.startswith(BOM) else 0

    def document(self) -> Node | None:
        self._skip()
        if self._at == len(self._text):
            return None
        root = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise self._error("unexpected text after the end")
        return root

    def _skip(self) -> None:
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _error(self, problem: str) -> ConfigError:
        line = line_at(self._text, self._at)
        return ConfigError(f"is not valid JSON: {problem}", source=self._source, line=line)

    def _value(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error(f"nested deeper than {MAX_DEPTH} levels")
        here = self._text[self._at : self._at + 1]
        if here == "{":
            return self._object(depth)
        if here == "[":
            return self._array(depth)
        return self._scalar()

    def _scalar(self) -> Scalar:
        start = self._at
        found = (_STRING if self._text.startswith('"', start) else _PLAIN).match(self._text, start)
        if found is None:
            raise self._error("expected a value")
        try:
            value = json.loads(found[0])
        except ValueError:
            raise self._error("invalid value") from None
        self._at = found.end()
        return Scalar(start, self._at, value)

    def _array(self, depth: int) -> Array:
        start = self._at
        items: list[Node] = []
        while self._next("]", first=not items):
            items.append(self._value(depth + 1))
        return Array(start, self._at, tuple(items))

    def _object(self, depth: int) -> Object:
        start = self._at
        members: dict[str, Member] = {}
        while self._next("}", first=not members):
            member = self._member(depth)
            if member.key in members:
                first = line_at(self._text, members[member.key].start)
                self._at = member.start
                raise self._error(f"duplicate key {member.key!r} (first on line {first})")
            members[member.key] = member
        return Object(start, self._at, tuple(members.values()))

    def _member(self, depth: int) -> Member:
        if not self._text.startswith('"', self._at):
            raise self._error("expected a key in double quotes")
        key = self._scalar()
        self._skip()
        if not self._text.startswith(":", self._at):
            raise self._error(f"expected ':' after {key.value!r}")
        self._at += 1
        self._skip()
        return Member(key.value, key.start, self._value(depth + 1))

    def _next(self, closing: str, *, first: bool) -> bool:
        """Step over the bracket or comma before the next item; False, past the closing bracket, if there is none."""
        if first:
            self._at += 1
        self._skip()
        if not first and not self._text.startswith(closing, self._at):
            if not self._text.startswith(",", self._at):
                raise self._error(f"expected ',' or {closing!r}")
            self._at += 1
            self._skip()
        if self._text.startswith(closing, self._at):
            self._at += 1
            return False
        return True
