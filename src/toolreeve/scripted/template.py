"""Script templates: values are passed to a script as data, beside it.

Compiled once, when the tool is loaded. A rendered script consists of the author's text and of `${__toolreeve[0]}`,
`${__toolreeve[1]}`…, each quoted for its context; the values are passed on a descriptor. No value is ever part of a
text that a shell parses.
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
    MAX_SECTIONS,
    MAX_VALUES,
    QuoteContext,
    QuotePlace,
    read_quoting,
)
from toolreeve.scripted.syntax import Node, Scope, Section, TemplateProblem, Text, Value, parse
from toolreeve.scripted.words import ARRAY, ValueHole

MAX_SIZE = 32 * 1024 * 1024
_RESERVED = re.compile(f"{ARRAY}|{MARKS.pattern}|\\0")
_AROUND = {
    QuoteContext.BARE: ('"', '"'),
    QuoteContext.DOUBLE: ("", ""),
    QuoteContext.HEREDOC: ("", ""),
    QuoteContext.SINGLE: ("'\"", "\"'"),
    QuoteContext.ANSI: ("'\"", "\"$'"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRules:
    """The author's rules for a parameter: its type and allowed values. `allow_code` says that it is code."""

    numeric: bool = False
    choices: tuple[Any, ...] | None = None
    allow_dash: bool = False
    allow_code: bool = False

    @property
    def is_free(self) -> bool:
        return not (self.numeric or self.choices is not None or self.allow_code)

    def refuse(self, value: Any) -> str:
        """Why a value violates them: items of a list can bring values under its name that no schema has seen."""
        if self.choices is not None:
            return "" if value in self.choices else "is not one of the allowed values"
        is_number = isinstance(value, int | float)
        return "" if is_number or not self.numeric else "is not a number"


NO_RULES = ValueRules()


@dataclass(frozen=True, slots=True)
class _Slot:
    """The position of one value. `beginnings` are what it may not begin with there; `{}` it may not contain at all."""

    number: int
    value: Value
    place: QuotePlace
    rules: ValueRules
    beginnings: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{{{{{self.value.expression.source}}}}}"

    def text(self, scope: Scope) -> str:
        """Raises ToolError(INVALID_PARAMS)."""
        expression = self.value.expression
        if self.rules is not NO_RULES:
            raw = expression.find(scope)
            if raw is not MISSING and (reason := self.rules.refuse(raw)):
                raise self._invalid(reason)
        try:
            found = expression.value(scope)
        except (ValueError, TypeError, IndexError, AttributeError, OverflowError) as problem:
            raise self._invalid(f"cannot be filtered: {problem}") from None
        if found is MISSING or found is None:
            raise self._invalid("is missing and has no default")
        text = as_text(found)
        if "\0" in text:
            raise self._invalid("contains a NUL character, which no program argument can")
        if "{}" in self.beginnings and "{}" in text:
            raise self._invalid("may not contain '{}' here: find would replace it")
        if begun := find_beginning(text, self.beginnings):
            raise self._invalid(f"may not begin with {begun!r} here: it would be a command or an option")
        return text

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
        if self.size > MAX_SIZE:
            raise ToolError(
                ErrorCode.INVALID_PARAMS, f"the arguments make more than {MAX_SIZE // 1024 // 1024} MB; pass a file"
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
        return "".join(_show_pieces(self._pieces, args))


def _reference(slot: _Slot, index: int) -> str:
    before, after = _AROUND[slot.place.context]
    return f"{before}${{{ARRAY}[{index}]}}{after}"


def _show_pieces(pieces: Sequence[_Piece], scope: Scope) -> Iterator[str]:
    for piece in pieces:
        if isinstance(piece, str):
            yield piece
        elif isinstance(piece, _Block):
            for inner in piece.section.scopes(scope):
                yield from _show_pieces(piece.body, inner)
        else:
            yield _show_value(piece, scope)


def _show_value(slot: _Slot, scope: Scope) -> str:
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


def compile_script(source: str, rules: Mapping[str, ValueRules]) -> Script:
    """Raises TemplateProblem: the template is invalid, or a value would be code in its position."""
    if (found := _RESERVED.search(source)) is not None:
        line = source.count("\n", 0, found.start()) + 1
        raise TemplateProblem(f"{found[0]!r} is reserved for the runtime", line=line, fix="use another name")
    compiler = _Compiler(parse(source), rules)
    return compiler.compile()


class _Compiler:
    def __init__(self, nodes: Sequence[Node], rules: Mapping[str, ValueRules]) -> None:
        self._rules = rules
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
                    if len(self._values) >= MAX_VALUES:
                        raise TemplateProblem("contains too many values", line=line, fix="split the script")
                    self._values.append(node)
                    yield chr(FIRST_VALUE + len(self._values) - 1)
                case Section(_, _, body, line, _):
                    if len(self._sections) >= MAX_SECTIONS - 1:
                        raise TemplateProblem("contains too many sections", line=line, fix="split the script")
                    number = len(self._sections)
                    self._sections.append(node)
                    yield chr(FIRST_OPEN + number)
                    yield from self._marked(body)
                    yield chr(FIRST_CLOSE + number)

    def compile(self) -> Script:
        """Checks the script with every section left out, repeated once, and repeated twice."""
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
        value = self._values[number]
        place = self._reading.places[number]
        expression = value.expression
        rules = self._rules.get(expression.root, NO_RULES) if len(expression.path) == 1 else NO_RULES
        beginnings = set(found.get(number, ()))
        if place.leads:
            beginnings.add("-")
        if rules.allow_dash:
            beginnings.discard("-")
        return _Slot(number, value, place, rules, tuple(sorted(beginnings)))


def _text_of(pieces: Sequence[_Piece], *, times: int) -> tuple[str, dict[int, ValueHole]]:
    """The script with each section repeated so many times, and what its references mean."""
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
                tainted = piece.rules.is_free and literal != "number"
                holes[index] = ValueHole(piece.number, piece.label, piece.value.line, tainted, literal)
                yield _reference(piece, index)

    return "".join(text(pieces)), holes


class Message:
    """A compiled template of a text for people: values are inserted unchanged."""

    __slots__ = ("_nodes",)

    def __init__(self, source: str) -> None:
        self._nodes = parse(source)

    def render(self, args: Scope) -> str:
        return "".join(_render_message(self._nodes, args))


def _render_message(nodes: Sequence[Node], scope: Scope) -> Iterator[str]:
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
                    yield from _render_message(node.body, inner)
