"""How does a new part of a JSON object look? Like the parts it stands beside: with their indentation and line ends."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.adopt.json_parts import ObjectPart
from toolreeve.config.jsonc import BOM, Node, Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A part that no file has yet; it is laid out like those beside it."""

    key: str
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A part as text: `body` is its key and value with the comments above, `tail` what ends its line."""

    key: str
    body: str
    tail: tuple[str, ...] = ()


class Layout:
    """How new parts of one object are laid out: like the part they go before, else as the file does it."""

    def __init__(self, text: str, root: Node | None, around: Object, place: ObjectPart | None) -> None:
        self._end = line_end(text)
        self._unit = _unit(text, root)
        self._outer = _indent_at(text, around.start)
        if place is None:
            self.flat = "\n" not in text.strip()
            self._inner = self._outer + self._unit
        else:
            self.flat = not _begins_line(text, place.lead)
            self._inner = _indent_at(text, place.lead)

    @property
    def new_line(self) -> str:
        return self._end + self._inner

    def written(self, new: Fresh | Written) -> Written:
        if isinstance(new, Written):
            return new
        return Written(key=new.key, body=f"{json.dumps(new.key, ensure_ascii=False)}: {self._nested(new.value, 0)}")

    def part(self, written: Written, *, comma: bool) -> str:
        return self.body(written) + "," * comma + self.tail(written)

    def body(self, written: Written) -> str:
        return self._own_ends(written.body)

    def tail(self, written: Written) -> str:
        return self._own_ends("".join(f" {each}" for each in written.tail))

    def behind(self, written: Written) -> str:
        """What parts this part from the next."""
        return " " if self.flat and not ends_with_line_comment(written.tail) else self.new_line

    def closing(self, last: Written) -> str:
        return "" if self.flat and not ends_with_line_comment(last.tail) else self._end + self._outer

    def lines(self, texts: Sequence[str]) -> str:
        """Comments by themselves, with nothing else on their lines."""
        return "".join(each + self.new_line for each in texts)

    def _own_ends(self, text: str) -> str:
        return text.replace("\r\n", "\n").replace("\n", self._end)

    def _nested(self, value: Any, level: int) -> str:
        """A value, indented as far as it stands in there; lists stay on their line."""
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
    """The blanks that the line of a position begins with."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position].lstrip(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, position: int) -> bool:
    start = text.rfind("\n", 0, position) + 1
    return start > 0 and not text[start:position].strip()


def line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str, root: Node | None) -> str:
    """One step of indentation: that of the first key in the file."""
    first = root.members[0].start if isinstance(root, Object) and root.members else 0
    return _indent_at(text, first) or "  " if first and _begins_line(text, first) else "  "
