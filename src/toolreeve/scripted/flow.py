"""Which variables of a script hold values of the caller? Those assigned from one, and what is assigned from them.

Over-matching: what a program prints, or reads from its input, counts as the caller's where the caller's values went in.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ARRAY = "__toolreeve"
REFERENCE = re.compile(r"\$\{" + ARRAY + r"\[(\d+)\]\}")
_FROM_OUTSIDE = frozenset({*map(str, range(1, 10)), "@", "*", "REPLY", "MAPFILE", "BASH_REMATCH", "OPTARG"})
_NUMBER_FORMATS = frozenset({"%d", "%i", "%u", "%x", "%o"})
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_EXPANSIONS = frozenset({"simple_expansion", "expansion"})
Node = Any
"""A node of tree-sitter, which is imported only where a script is read."""


@dataclass(frozen=True, slots=True)
class Hole:
    """A value in the script. `dirty`: anything may come in; else only numbers, or words that the author listed."""

    number: int
    label: str
    line: int
    dirty: bool


def walk(node: Node) -> Iterator[Node]:
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))


def text_of(node: Node) -> str:
    return str(node.text.decode())


def is_reference(node: Node) -> bool:
    """The grammar counts blanks before an expansion as part of it."""
    return REFERENCE.fullmatch(text_of(node).strip()) is not None


def literal(node: Node) -> str | None:
    """The word as the shell would see it, or None where it is not fixed."""
    if any(part.type in (*_EXPANSIONS, "command_substitution", "process_substitution") for part in walk(node)):
        return None
    return re.sub(r"['\"\\]", "", text_of(node))


class Flow:
    """`holes` are the references of this text, by their index in the array."""

    def __init__(self, root: Node, holes: Mapping[int, Hole]) -> None:
        self.root, self.holes = root, holes
        self.integers, self.maps = set[str](), set[str]()
        self.names: set[str] = set(_FROM_OUTSIDE)
        self._find_declared()
        while self._grow():
            pass

    def dirt(self, node: Node) -> str:
        """What of the caller's is in there, as a person would name it; empty for nothing."""
        for found in REFERENCE.findall(text_of(node)):
            hole = self.holes[int(found)]
            if hole.dirty:
                return hole.label
        return next((f"${name}" for name in self._expanded(node) if name in self.names), "")

    def mentions(self, text: str) -> str:
        """As `dirt`, for arithmetic, where a name needs no `$`."""
        for found in REFERENCE.findall(text):
            if self.holes[int(found)].dirty:
                return self.holes[int(found)].label
        own = REFERENCE.sub(" ", text)
        named = [*_IDENTIFIER.findall(own), *re.findall(r"\$\{?([0-9@*])", own)]
        return next((name for name in named if name in self.names), "")

    def _expanded(self, node: Node) -> Iterator[str]:
        for part in walk(node):
            if part.type in _EXPANSIONS:
                yield from (text_of(each) for each in walk(part) if each.type.endswith("variable_name"))

    def _find_declared(self) -> None:
        for node in walk(self.root):
            if node.type == "declaration_command":
                flags = "".join(text_of(each) for each in node.children if text_of(each).startswith("-"))
                names = {
                    _name_of(each) for each in node.children if each.type in ("variable_assignment", "variable_name")
                }
                self.integers |= names if "i" in flags else set()
                self.maps |= names if "A" in flags else set()

    def _grow(self) -> bool:
        before = len(self.names)
        for node in walk(self.root):
            if node.type == "variable_assignment":
                value = node.child_by_field_name("value")
                if value is not None and self.dirt(value):
                    self.names.add(_name_of(node))
            elif node.type == "for_statement":
                if any(self.dirt(value) for value in node.children_by_field_name("value")):
                    self.names.add(text_of(node.child_by_field_name("variable")))
            elif node.type == "command":
                self.names |= _filled(node)
        return len(self.names) > before


def _name_of(node: Node) -> str:
    if node.type == "variable_name":
        return text_of(node)
    return next((text_of(each) for each in walk(node) if each.type == "variable_name"), "")


def _filled(command: Node) -> set[str]:
    """Variables that a command fills from its input; `printf -v n %d` makes a number of whatever it is given."""
    words = [literal(each) or "" for each in command.children if each.type not in ("file_redirect", "heredoc_redirect")]
    if not words:
        return set()
    if words[0] in ("read", "mapfile", "readarray", "getopts"):
        return {word for word in words[1:] if _IDENTIFIER.fullmatch(word)}
    if words[:2] == ["printf", "-v"] and len(words) > 3 and words[3] not in _NUMBER_FORMATS:
        return {words[2]}
    return set()
