"""How is a client's JSON file changed without touching the rest of it? The text of one section is replaced, no more.

Comments, order, indentation and line ends outside the section stay as they are, byte for byte.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.config.jsonc import BOM, Member, Node, Object, parse_jsonc
from toolreeve.core.errors import ConfigError

KeyPath = tuple[str, ...]


def without_servers(text: str, section: KeyPath, gone: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    """The text with these keys of a section taken away and, if there is an `entry`, with `toolreeve` as the first."""
    root = parse_jsonc(text, "")
    if root is None:
        return text + _new_document(text, section, entry)
    found = _find(root, section)
    if found is None:
        return _with_new_section(text, root, section, entry)
    style = _Style(text, root, found)
    kept = [text[member.start : member.node.end] for member in found.members if member.key not in gone]
    own = [] if entry is None else [style.member("toolreeve", entry)]
    return text[: found.start] + style.object([*own, *kept]) + text[found.end :]


def _find(node: Node | None, path: KeyPath) -> Object | None:
    for key in path:
        member = node.get(key) if isinstance(node, Object) else None
        node = member.node if member is not None else None
    return node if isinstance(node, Object) else None


def _new_document(text: str, section: KeyPath, entry: Mapping[str, Any] | None) -> str:
    """What a file with nothing in it is given."""
    value: Any = {"toolreeve": entry} if entry is not None else {}
    for key in reversed(section):
        value = {key: value}
    gap = "" if text in ("", BOM) or text.endswith("\n") else "\n"
    return gap + json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _with_new_section(text: str, root: Node, section: KeyPath, entry: Mapping[str, Any] | None) -> str:
    if not isinstance(root, Object) or len(section) != 1 or entry is None:
        raise ConfigError("has no place for an entry", source="")
    style = _Style(text, root, root)
    value = style.nested({"toolreeve": entry})
    member = f"{json.dumps(section[0], ensure_ascii=False)}: {value}"
    old = [text[each.start : each.node.end] for each in root.members]
    if not old:
        return text[: root.start] + style.object([member]) + text[root.end :]
    first = root.members[0].start
    return text[:first] + member + "," + style.between + text[first:]


class _Style:
    """How the parts of one object are laid out: by the parts that are there, else as the file does it."""

    def __init__(self, text: str, root: Node, section: Object) -> None:
        self._flat = "\n" not in text.strip()
        self._end = "\r\n" if "\r\n" in text else "\n"
        self._outer = _indent_at(text, section.start)
        first = section.members[0] if section.members else None
        own_line = first is not None and _begins_line(text, first)
        self._unit = _unit(text, root)
        self._inner = _indent_at(text, first.start) if first is not None and own_line else self._outer + self._unit

    @property
    def between(self) -> str:
        return " " if self._flat else self._end + self._inner

    def member(self, key: str, value: Any) -> str:
        return f"{json.dumps(key)}: {self.nested(value)}"

    def nested(self, value: Any, level: int = 0) -> str:
        """A value inside the section, indented as far as it stands in there; lists stay on their line."""
        if self._flat or not isinstance(value, Mapping) or not value:
            return json.dumps(value, ensure_ascii=False)
        start = self._end + self._inner + self._unit * level
        members = (
            f"{json.dumps(key, ensure_ascii=False)}: {self.nested(each, level + 1)}" for key, each in value.items()
        )
        return "{" + ",".join(start + self._unit + member for member in members) + start + "}"

    def object(self, members: Sequence[str]) -> str:
        if not members:
            return "{}"
        if self._flat:
            return "{" + ", ".join(members) + "}"
        inner = f",{self.between}".join(members)
        return "{" + self.between + inner + self._end + self._outer + "}"


def _indent_at(text: str, position: int) -> str:
    """The blanks that the line of a position begins with."""
    start = text.rfind("\n", 0, position) + 1
    line = text[start:position].lstrip(BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, member: Member) -> bool:
    start = text.rfind("\n", 0, member.start) + 1
    return start > 0 and not text[start : member.start].strip()


def _unit(text: str, root: Node) -> str:
    """One step of indentation: that of the first key in the file."""
    if isinstance(root, Object) and root.members and _begins_line(text, root.members[0]):
        return _indent_at(text, root.members[0].start) or "  "
    return "  "
