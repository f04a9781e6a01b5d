"""Words of a script: fixed text, and expansions in it.

A word is read as bash would unquote it. What is not understood counts as unknown, never as fixed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

ARRAY = "__toolreeve"
REFERENCE = re.compile(r"\$\{" + ARRAY + r"\[(\d+)\]\}")
EXPANSIONS = frozenset({"simple_expansion", "expansion"})
_UNKNOWN = frozenset({*EXPANSIONS, "command_substitution", "process_substitution", "arithmetic_expansion"})
_BRACES = re.compile(r"(?<!\\)\{[^{}]*(?:,|\.\.)[^{}]*\}")
_PLAIN_NAME = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_WHOLE_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
_DIRECTORY = re.compile(r"\$\{?(?:OLD)?PWD\}?")
MULTI_WORD = frozenset({"$@", "xargs"})
DIRECTORY_TILDE = re.compile(r"(?:^|[:=])~(?:[+-]\d*|\d+)(?=[/:]|$)")
"""`~+`, `~-` and `~1`: the directory, the one before it, one of the stack."""
GLOB = re.compile(r"(?<!\\)(?:[*?]|\[[^\]]+\])")
Node = Any
"""A node of tree-sitter, which is imported only where a script is read."""


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


@dataclass(frozen=True, slots=True)
class ValueHole:
    """A value in the script. `tainted`: it may be anything; otherwise only a number, or a word that the author listed.

    `literal` is the language that its last filter makes a literal of, such as `sql` or `json`.
    """

    number: int
    label: str
    line: int
    tainted: bool
    literal: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part of a word that is not fixed: a value of the caller (`hole`), or an expansion.

    `is_path`: it cannot begin with a dash. `taint` names the caller's value that it may contain.
    """

    source: str
    taint: str
    hole: ValueHole | None = None
    quoted: bool = False
    is_path: bool = False
    is_glob: bool = False

    @property
    def variable(self) -> str:
        found = _PLAIN_NAME.fullmatch(self.source)
        return found[1] if found else ""

    @property
    def is_many(self) -> bool:
        """Whether it can be several words."""
        return self.source in MULTI_WORD or self.is_glob or "[@]" in self.source or self.source.startswith("${@")

    @property
    def array(self) -> str:
        found = _WHOLE_ARRAY.fullmatch(self.source)
        return found[1] if found else ""


Part = str | Unknown


@dataclass(frozen=True, slots=True)
class Word:
    node: Node
    parts: tuple[Part, ...]

    @property
    def taint(self) -> str:
        return next((part.taint for part in self.parts if isinstance(part, Unknown) and part.taint), "")

    @property
    def text(self) -> str | None:
        """The word as a program gets it, or None if it is not fixed."""
        if all(isinstance(part, str) for part in self.parts):
            return "".join(part for part in self.parts if isinstance(part, str))
        return None

    @property
    def start(self) -> str:
        """The fixed text that it begins with."""
        return self.parts[0] if self.parts and isinstance(self.parts[0], str) else ""

    @property
    def end(self) -> str:
        return self.parts[-1] if self.parts and isinstance(self.parts[-1], str) else ""

    @property
    def shape(self) -> str:
        """Its text, with a NUL for each part that is not fixed."""
        return "".join(part if isinstance(part, str) else "\0" for part in self.parts)

    @property
    def code(self) -> str:
        """The text of a word that is code. Expansions stay visible as variables."""
        return "".join(part if isinstance(part, str) else f"${{{part.variable or '_unknown_'}}}" for part in self.parts)

    @property
    def leading(self) -> Unknown | None:
        return self.parts[0] if self.parts and isinstance(self.parts[0], Unknown) else None

    @property
    def beginning(self) -> tuple["Word", ...]:
        """The words that it may be, as far as its beginning goes: what is not fixed may be empty."""
        found: list[Word] = []
        for index, part in enumerate(self.parts):
            if isinstance(part, Unknown):
                found.append(Word(self.node, self.parts[index:]))
            elif part:
                break
        return tuple(found)

    @property
    def is_many(self) -> bool:
        return any(isinstance(part, Unknown) and part.is_many for part in self.parts)

    @property
    def is_whole_value(self) -> bool:
        return len(self.parts) == 1 and isinstance(self.parts[0], Unknown)


def first_taint(words: Iterable[Word]) -> str:
    return next((word.taint for word in words if word.taint), "")


def has_braces(node: Node) -> bool:
    """Whether bash would expand it into several words."""
    if node.type not in ("concatenation", "word", "brace_expression"):
        return False
    children = node.children or [node]
    bare = "".join(
        text_of(each) if each.type not in ("string", "raw_string", "ansi_c_string") else "_" for each in children
    )
    return _BRACES.search(REFERENCE.sub("_", re.sub(r"\$\{[^}]*\}", "_", bare))) is not None


class WordReader:
    """`taint_of` names the caller's value in a node, `replaced` that in what bash puts in the place of a word."""

    def __init__(self, holes: Mapping[int, ValueHole], taint_of: Any, replaced: Any) -> None:
        self._holes = holes
        self._taint_of = taint_of
        self._replaced = replaced

    def word(self, node: Node) -> Word:
        if has_braces(node):
            return Word(node, (Unknown(text_of(node), self._taint_of(node)),))
        return Word(node, tuple(_joined(self._parts(node, quoted=False))))

    def _parts(self, node: Node, *, quoted: bool) -> Iterator[Part]:
        text = text_of(node)
        if node.type in _UNKNOWN:
            yield from self._unknown(node, quoted=quoted)
        elif node.type == "raw_string":
            yield text[1:-1]
        elif node.type == "ansi_c_string":
            yield from self._ansi(node)
        elif node.type in ("string", "translated_string"):
            yield from self._between(node, quoted=True)
        elif node.children:
            yield from self._between(node, quoted=quoted)
        elif quoted:
            yield re.sub(r'\\([\\$`"])', r"\1", text.replace("\\\n", ""))
        elif node.type == "word" and (taint := self._replaced(node)):
            yield from self._matching(text, taint)
        else:
            yield re.sub(r"\\(.)", r"\1", text.replace("\\\n", ""))

    def _matching(self, text: str, taint: str) -> Iterator[Part]:
        """A pattern that the caller's names of files may match, or the caller's directory."""
        if found := DIRECTORY_TILDE.search(text):
            yield from (found[0][: found[0].index("~")], Unknown(text, taint, is_path=True), text[found.end() :])
            return
        position = 0
        for found in GLOB.finditer(text):
            yield from (text[position : found.start()], Unknown(text, taint, is_glob=True))
            position = found.end()
        yield text[position:]

    def _between(self, node: Node, *, quoted: bool) -> Iterator[Part]:
        """The children, and the text that the grammar leaves between them."""
        position = node.start_byte
        for child in node.children:
            gap = node.text[position - node.start_byte : child.start_byte - node.start_byte]
            if gap:
                yield gap.decode()
            if child.type not in ('"', "$") or not quoted:
                yield from self._parts(child, quoted=quoted)
            elif child.type == "$" and child.next_sibling is not None and child.next_sibling.type != "string":
                yield "$"
            position = child.end_byte

    def _unknown(self, node: Node, *, quoted: bool) -> Iterator[Part]:
        text = text_of(node)
        blanks = text[: len(text) - len(text.lstrip())]
        if blanks:
            yield blanks
        found = REFERENCE.fullmatch(text.strip())
        if found is None:
            taint = self._taint_of(node)
            is_path = bool(taint) and _DIRECTORY.fullmatch(text.strip()) is not None
            yield Unknown(text.strip(), taint, quoted=quoted, is_path=is_path)
            return
        hole = self._holes[int(found[1])]
        yield Unknown(text.strip(), hole.label if hole.tainted else "", hole, quoted=True)

    def _ansi(self, node: Node) -> Iterator[Part]:
        try:
            yield text_of(node)[2:-1].encode("latin-1").decode("unicode_escape")
        except ValueError:
            yield Unknown(text_of(node), "")


def _joined(parts: Iterator[Part]) -> Iterator[Part]:
    held = ""
    for part in parts:
        if isinstance(part, str):
            held += part
            continue
        if held:
            yield held
        held = ""
        yield part
    if held:
        yield held
