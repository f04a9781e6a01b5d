"""Formats new JSON members like their neighbors: indentation and line ends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.adopt.json_parts import ObjectPart
from toolreeve.config.jsonc import BOM, Node, Object


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMember:
    """A member that no file has yet; it is formatted like its neighbors."""

    key: str
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberText:
    """A member as text: `body` is its key and value with the comments above, `tail` the comments that end its line."""

    key: str
    body: str
    tail: tuple[str, ...] = ()


class JsonStyle:
    """The style of new members of one object: that of the neighbor, else that of the file."""

    def __init__(self, text: str, root: Node | None, around: Object, neighbor: ObjectPart | None) -> None:
        self._end = line_end(text)
        self._unit = _unit(text, root)
        self._outer = _indent_at(text, around.start)
        if neighbor is None:
            self.flat = "\n" not in text.strip()
            self._inner = self._outer + self._unit
        else:
            self.flat = not _begins_line(text, neighbor.lead)
            self._inner = _indent_at(text, neighbor.lead)

    @property
    def new_line(self) -> str:
        return self._end + self._inner

    def format(self, new: NewMember | MemberText) -> MemberText:
        if isinstance(new, MemberText):
            return new
        return MemberText(key=new.key, body=f"{json.dumps(new.key, ensure_ascii=False)}: {self._nested(new.value, 0)}")

    def member(self, member: MemberText, *, comma: bool) -> str:
        return self.body(member) + "," * comma + self.tail(member)

    def body(self, member: MemberText) -> str:
        return self._own_ends(member.body)

    def tail(self, member: MemberText) -> str:
        return self._own_ends("".join(f" {each}" for each in member.tail))

    def separator(self, member: MemberText) -> str:
        return " " if self.flat and not ends_with_line_comment(member.tail) else self.new_line

    def closing(self, last: MemberText) -> str:
        return "" if self.flat and not ends_with_line_comment(last.tail) else self._end + self._outer

    def lines(self, texts: Sequence[str]) -> str:
        """Comments, each on its own line."""
        return "".join(each + self.new_line for each in texts)

    def _own_ends(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\n", self._end)

    def _nested(self, value: Any, level: int) -> str:
        """A value with its indentation; lists stay on one line."""
        if self.flat or not isinstance(value, Mapping) or not value:
            return json.dumps(value, ensure_ascii=False)
        start = self.new_line + self._unit * level
        members = (
            f"{json.dumps(key, ensure_ascii=False)}: {self._nested(each, level + 1)}" for key, each in value.items()
        )
        return "{" + ",".join(start + self._unit + member for member in members) + start + "}"


def ends_with_line_comment(texts: Sequence[str]) -> bool:
    return bool(texts) and texts[-1].startswith("//")


def _indent_at(text: str, position: int) -> str:
    """The indentation of the line at a position."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position].lstrip(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, position: int) -> bool:
    start = text.rfind("\n", 0, position) + 1
    return start > 0 and not text[start:position].strip()


def line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str, root: Node | None) -> str:
    """One level of indentation: that of the first key in the file."""
    if not isinstance(root, Object) or not root.members:
        return "  "
    first = root.members[0].start
    indent = _indent_at(text, first) if _begins_line(text, first) else ""
    return indent or "  "
