"""How does a value get into a script? As data, beside it: the script only ever holds references to an array.

Compiled once, when the tool is loaded. A rendered script consists of the author's text and of `${__toolreeve[0]}`,
`${__toolreeve[1]}`…, each quoted for the place it stands in; the values travel on a descriptor. No value is ever part
of a text that a shell parses.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.evaluators import find_beginning
from toolreeve.scripted.checks.evaluation import Beginnings, find_beginnings
from toolreeve.scripted.filters import MISSING, as_text
from toolreeve.scripted.quoting import (
    FIRST_CLOSE,
    FIRST_OPEN,
    FIRST_VALUE,
    MARKS,
    MOST_SECTIONS,
    MOST_VALUES,
    QuoteContext,
    QuotePlace,
    read_quoting,
)
from toolreeve.scripted.syntax import Node, Scope, Section, TemplateProblem, Text, Value, parse
from toolreeve.scripted.words import ARRAY, ValueHole

LARGEST = 32 * 1024 * 1024
_KEPT = re.compile(f"{ARRAY}|{MARKS.pattern}|\\0")
_AROUND = {
    QuoteContext.BARE: ('"', '"'),
    QuoteContext.DOUBLE: ("", ""),
    QuoteContext.HEREDOC: ("", ""),
    QuoteContext.SINGLE: ("'\"", "\"'"),
    QuoteContext.ANSI: ("'\"", "\"$'"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the author says about a parameter: its kind, and what it may be. `allow_code` says that it is code."""

    numeric: bool = False
    choices: tuple[Any, ...] | None = None
    allow_dash: bool = False
    allow_code: bool = False

    @property
    def is_free(self) -> bool:
        return not (self.numeric or self.choices is not None or self.allow_code)

    def refuse(self, value: Any) -> str:
        """Why a value breaks them: items of a list can bring values under its name that no schema has seen."""
        if self.choices is not None:
            return "" if value in self.choices else "is not one of the words that are allowed here"
        is_number = isinstance(value, int | float)
        return "" if is_number or not self.numeric else "is not a number"


FREE = Terms()


@dataclass(frozen=True, slots=True)
class _Slot:
    """The place of one value. `beginnings` are what it may not begin with there."""

    number: int
    value: Value
    place: QuotePlace
    terms: Terms
    beginnings: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{{{{{self.value.expression.source}}}}}"

    def text(self, scope: Scope) -> str:
        """Raises ToolError(INVALID_PARAMS)."""
        expression = self.value.expression
        if self.terms is not FREE and (raw := expression.find(scope)) is not MISSING:
            self._require(not (why := self.terms.refuse(raw)), why)
        try:
            found = expression.value(scope)
        except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as problem:
            raise self._invalid(f"cannot be filtered: {problem}") from None
        self._require(found is not MISSING and found is not None, "was not given, and has no default")
        text = as_text(found)
        self._require("\0" not in text, "holds a NUL character, which no program can be given")
        if begun := find_beginning(text, self.beginnings):
            raise self._invalid(f"may not begin with {begun!r} here: it would be a command or an option")
        return text

    def _require(self, condition: bool, problem: str) -> None:  # noqa: FBT001
        if not condition:
            raise self._invalid(problem)

    def _invalid(self, problem: str) -> ToolError:
        return ToolError(ErrorCode.INVALID_PARAMS, f"{self.label} {problem}")


@dataclass(frozen=True, slots=True)
class _Block:
    section: Section
    body: "tuple[_Piece, ...]"


_Piece = str | _Slot | _Block


@dataclass(frozen=True, slots=True)
class Rendered:
    """A script and the values it refers to."""

    script: str
    values: list[str]

    def data(self) -> bytes:
        return b"".join(value.encode() + b"\0" for value in self.values)


@dataclass(slots=True)
class _Output:
    parts: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    size: int = 0

    def grow(self, text: str) -> None:
        self.size += len(text)
        if self.size > LARGEST:
            raise ToolError(
                ErrorCode.INVALID_PARAMS, f"the arguments make more than {LARGEST // 1024 // 1024} MB; pass a file"
            )


class Script:
    """A compiled template of a bash script."""

    __slots__ = ("_fixed", "_pieces")

    def __init__(self, pieces: tuple[_Piece, ...]) -> None:
        self._pieces = pieces
        whole = all(not isinstance(piece, _Block) for piece in pieces)
        self._fixed = _text_of(pieces, times=1)[0] if whole else None

    def render(self, args: Scope) -> Rendered:
        """Raises ToolError(INVALID_PARAMS)."""
        output = _Output()
        self._emit(self._pieces, args, output)
        return Rendered("".join(output.parts) if self._fixed is None else self._fixed, output.values)

    def _emit(self, pieces: Sequence[_Piece], scope: Scope, output: _Output) -> None:
        for piece in pieces:
            if isinstance(piece, str):
                output.parts.append(piece)
            elif isinstance(piece, _Block):
                for inner in piece.section.scopes(scope):
                    self._emit(piece.body, inner, output)
                    output.grow(" ")
            elif piece.place.context is not QuoteContext.COMMENT:
                text = piece.text(scope)
                output.grow(text)
                output.parts.append(_reference(piece, len(output.values)))
                output.values.append(text)

    def show(self, args: Scope) -> str:
        """The script as if the values had been typed into it, for people and rules to read; never for a shell."""
        return "".join(_shown(self._pieces, args))


def _reference(slot: _Slot, index: int) -> str:
    before, after = _AROUND[slot.place.context]
    return f"{before}${{{ARRAY}[{index}]}}{after}"


def _shown(pieces: Sequence[_Piece], scope: Scope) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        elif isinstance(piece, _Block):
            for inner in piece.section.scopes(scope):
                yield from _shown(piece.body, inner)
        else:
            yield _typed(piece, scope)


def _typed(slot: _Slot, scope: Scope) -> str:
    try:
        text = as_text(slot.value.expression.value(scope))
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError):
        return slot.label
    match slot.place.context:
        case QuoteContext.BARE:
            return shlex.quote(text)
        case QuoteContext.DOUBLE | QuoteContext.HEREDOC:
            return re.sub(r'([\\$`"])', r"\\\1", text)
        case QuoteContext.SINGLE | QuoteContext.ANSI:
            return text.replace("'", "'\"'\"'")
        case _:
            return ""


def compile_script(source: str, terms: Mapping[str, Terms]) -> Script:
    """Raises TemplateProblem: the template is wrong, or a value would be code where it stands."""
    if (found := _KEPT.search(source)) is not None:
        line = source.count("\n", 0, found.start()) + 1
        raise TemplateProblem(f"{found[0]!r} is kept for the runtime", line=line, fix="use another name")
    compiler = _Compiler(parse(source), terms)
    return compiler.compile()


class _Compiler:
    def __init__(self, nodes: Sequence[Node], terms: Mapping[str, Terms]) -> None:
        self._terms = terms
        self._values: list[Value] = []
        self._sections: list[Section] = []
        marked = "".join(self._marked(nodes))
        self._reading = read_quoting(marked)

    def _marked(self, nodes: Sequence[Node]) -> Iterator[str]:
        for node in nodes:
            match node:
                case Text(text):
                    yield text
                case Value(_, line):
                    if len(self._values) >= MOST_VALUES:
                        raise TemplateProblem("holds too many values", line=line, fix="split the script")
                    self._values.append(node)
                    yield chr(FIRST_VALUE + len(self._values) - 1)
                case Section(_, _, body, line, _):
                    if len(self._sections) >= MOST_SECTIONS - 1:
                        raise TemplateProblem("holds too many sections", line=line, fix="split the script")
                    number = len(self._sections)
                    self._sections.append(node)
                    yield chr(FIRST_OPEN + number)
                    yield from self._marked(body)
                    yield chr(FIRST_CLOSE + number)

    def compile(self) -> Script:
        """Looked at with every section left out, standing once, and standing twice."""
        found: Beginnings = {}
        pieces = self._pieces(self._reading.view, {})
        for times in (1, 0, 2):
            text, holes = _text_of(pieces, times=times)
            for number, beginnings in find_beginnings(text, holes).items():
                found.setdefault(number, set()).update(beginnings)
        return Script(self._pieces(self._reading.text, found))

    def _pieces(self, text: str, found: Beginnings) -> "tuple[_Piece, ...]":
        tokens = iter([token for token in re.split(f"({MARKS.pattern})", text) if token])
        return tuple(self._until_close(tokens, found))

    def _until_close(self, tokens: Iterator[str], found: Beginnings) -> Iterator[_Piece]:
        for token in tokens:
            code = ord(token[0])
            if not MARKS.match(token):
                yield token
            elif code < FIRST_OPEN:
                yield self._slot(code - FIRST_VALUE, found)
            elif code < FIRST_CLOSE:
                yield _Block(self._sections[code - FIRST_OPEN], tuple(self._until_close(tokens, found)))
            else:
                return

    def _slot(self, number: int, found: Beginnings) -> _Slot:
        value, place = self._values[number], self._reading.places[number]
        expression = value.expression
        terms = self._terms.get(expression.root, FREE) if len(expression.path) == 1 else FREE
        beginnings = set(found.get(number, ())) | ({"-"} if place.leads else set())
        if terms.allow_dash:
            beginnings.discard("-")
        return _Slot(number, value, place, terms, tuple(sorted(beginnings)))


def _text_of(pieces: Sequence[_Piece], *, times: int) -> tuple[str, dict[int, ValueHole]]:
    """The script with each section standing so many times, and what its references stand for."""
    holes: dict[int, ValueHole] = {}

    def text(pieces: Sequence[_Piece]) -> Iterator[str]:
        for piece in pieces:
            if isinstance(piece, str):
                yield piece
            elif isinstance(piece, _Block):
                for _ in range(times):
                    yield from text(piece.body)
            elif piece.place.context is not QuoteContext.COMMENT:
                index = len(holes)
                literal = piece.value.expression.literal
                dirty = piece.terms.is_free and literal != "number"
                holes[index] = ValueHole(piece.number, piece.label, piece.value.line, dirty, literal)
                yield _reference(piece, index)

    return "".join(text(pieces)), holes


class Message:
    """A compiled template of a text for people: values are put into it as they are."""

    __slots__ = ("_nodes",)

    def __init__(self, source: str) -> None:
        self._nodes = parse(source)

    def render(self, args: Scope) -> str:
        return "".join(_spoken(self._nodes, args))


def _spoken(nodes: Sequence[Node], scope: Scope) -> Iterator[str]:
    for node in nodes:
        match node:
            case Text(text):
                yield text
            case Value(expression, _):
                try:
                    yield as_text(expression.value(scope))
                except (ValueError, TypeError, IndexError, AttributeError, OverflowError):
                    yield f"{{{{{expression.source}}}}}"
            case Section():
                for inner in node.scopes(scope):
                    yield from _spoken(node.body, inner)
