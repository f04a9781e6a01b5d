"""Template syntax: text, values and sections, parsed from `{{…}}` at load time.

The syntax knows nothing of shells: it serves scripts and plain texts alike. What cannot be parsed is a
`TemplateProblem` with its line.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.core.suggest import hint_similar
from toolreeve.scripted.filters import FILTERS, LITERALS, MISSING, Filter

Scope = Mapping[str, Any]
ITEM_NAMES = ("key", "value", "item", ".")
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_PATH = re.compile(r"\.|[A-Za-z_][\w-]*(?:\.(?:[A-Za-z_][\w-]*|\d+))*")
_FILTER = re.compile(r"\s*\|\s*([A-Za-z_]\w*)\s*")
_ARGUMENT = re.compile(
    r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(-?\d+(?:\.\d+)?)|(true|false|null|none))\s*""", re.IGNORECASE
)
_WORDS = {"true": True, "false": False, "null": None, "none": None}


class TemplateProblem(Exception):
    """What is wrong with a template, on which line, and how to fix it."""

    def __init__(self, problem: str, *, line: int, fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.fix = fix


@dataclass(frozen=True, slots=True)
class Expression:
    """A name, perhaps with parts below it, and filters: `user.mail|lower`.

    `literal` is the language that the last filter makes a literal of; `number` if it produces only numbers.
    """

    source: str
    path: tuple[str, ...]
    filters: tuple[tuple[Filter, tuple[Any, ...]], ...] = ()
    has_default: bool = False
    literal: str = ""

    @property
    def root(self) -> str:
        return self.path[0]

    def find(self, scope: Scope) -> Any:
        """The value before any filter, or MISSING."""
        found = scope.get(self.path[0], MISSING)
        for part in self.path[1:]:
            found = _below(found, part)
        return MISSING if found is None else found

    def value(self, scope: Scope) -> Any:
        """May raise ValueError or TypeError if a filter does not accept the value."""
        found = self.find(scope)
        for function, arguments in self.filters:
            found = function(found, *arguments)
        return found


def _below(found: Any, part: str) -> Any:
    if isinstance(found, Mapping):
        return found.get(part, MISSING)
    if isinstance(found, list) and part.isdigit() and int(part) < len(found):
        return found[int(part)]
    return MISSING


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    expression: Expression
    line: int


@dataclass(frozen=True, slots=True)
class Section:
    """`iterates` is False if the body names the section's own value: `{{#data}}-d {{data}}{{/data}}` means "if set"."""

    expression: Expression
    inverted: bool
    body: "tuple[Node, ...]"
    line: int
    iterates: bool

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """One scope for each repetition of the body."""
        found = self.expression.find(scope)
        is_set = found is not MISSING and found is not False and found not in ("", [], {})
        if self.inverted or not is_set:
            return iter((scope,)) if self.inverted != is_set else iter(())
        if not self.iterates or not isinstance(found, dict | list):
            return iter(({**scope, ".": found},))
        return _each(found, scope)


def _each(found: dict[str, Any] | list[Any], scope: Scope) -> Iterator[Scope]:
    if isinstance(found, dict):
        for key, value in found.items():
            yield {**scope, "key": key, "value": value, "item": value, ".": value}
        return
    for item in found:
        own = item if isinstance(item, dict) else {}
        yield {**scope, "item": item, "value": item, ".": item, **own}


Node = Text | Value | Section


def parse(source: str) -> tuple[Node, ...]:
    """Raises TemplateProblem."""
    return _Parser(source).parse()


def values(nodes: Sequence[Node]) -> Iterator[Value]:
    for node in nodes:
        if isinstance(node, Value):
            yield node
        elif isinstance(node, Section):
            yield from values(node.body)


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._position = 0

    def parse(self) -> tuple[Node, ...]:
        nodes, closing = self._nodes(None)
        if closing:
            raise self._problem(f"{{{{/{closing}}}}} closes nothing", fix="remove it, or open the section before it")
        return nodes

    def _problem(self, text: str, *, at: int | None = None, fix: str = "") -> TemplateProblem:
        place = self._position if at is None else at
        return TemplateProblem(text, line=self._source.count("\n", 0, place) + 1, fix=fix)

    def _nodes(self, within: str | None) -> tuple[tuple[Node, ...], str | None]:
        """The nodes up to the end, or up to the tag that closes a section, and that tag's name."""
        nodes: list[Node] = []
        while (start := self._next_tag(nodes)) >= 0:
            tag = self._tag(start)
            if tag.startswith("/"):
                return tuple(nodes), tag[1:].strip()
            if tag[:1] in ("#", "^"):
                nodes.append(self._section(tag, start))
            elif tag[:1] in ("'", '"'):
                nodes.append(Text(self._literal(tag, start)))
            elif not tag.startswith("!"):
                nodes.append(Value(self._expression(tag, start), self._source.count("\n", 0, start) + 1))
        if within is not None:
            raise self._problem(f"section {within!r} is never closed", fix=f"write {{{{/{within}}}}} where it ends")
        return tuple(nodes), None

    def _next_tag(self, nodes: list[Node]) -> int:
        """Where the next tag starts, or -1; the text before it becomes a node. `{{{` is a brace and a tag."""
        start = self._source.find("{{", self._position)
        while start >= 0 and self._source.startswith("{{{", start):
            start += 1
        text = self._source[self._position :] if start < 0 else self._source[self._position : start]
        if text:
            nodes.append(Text(text))
        self._position = len(self._source) if start < 0 else start + 2
        return start

    def _tag(self, start: int) -> str:
        """The text between the braces; a quoted `}}` does not end it."""
        quote = ""
        for index in range(start + 2, len(self._source)):
            letter = self._source[index]
            if quote:
                quote = "" if letter == quote else quote
            elif letter in "'\"" and self._source[start + 2 : start + 3] != "!":
                quote = letter
            elif self._source.startswith("}}", index):
                self._position = index + 2
                return self._source[start + 2 : index].strip()
        fix = "write }} after it; a literal {{ is written {{'{{'}}"
        raise self._problem("{{ is never closed", at=start, fix=fix)

    def _literal(self, tag: str, start: int) -> str:
        match = _ARGUMENT.fullmatch(tag)
        if match is None:
            raise self._problem(f"{{{{{tag}}}}} is not one quoted text", at=start)
        return str(_literal_of(match))

    def _section(self, tag: str, start: int) -> Section:
        name = tag[1:].strip()
        expression = self._expression(name, start)
        if expression.filters:
            raise self._problem(f"section {name!r} takes no filter", at=start, fix="name the value alone")
        body, closing = self._nodes(name)
        if closing != name:
            raise self._problem(
                f"{{{{/{closing}}}}} was found instead of {{{{/{name}}}}}", fix="close sections in order"
            )
        own = any(value.expression.path[: len(expression.path)] == expression.path for value in values(body))
        line = self._source.count("\n", 0, start) + 1
        return Section(expression, tag[0] == "^", body, line, iterates=not own)

    def _expression(self, source: str, start: int) -> Expression:
        found = _PATH.match(source)
        if found is None:
            fix = "write {{name}}, {{name|filter}} or {{#name}}…{{/name}}; a literal {{ is written {{'{{'}}"
            raise self._problem(f"{{{{{source}}}}} names no value", at=start, fix=fix)
        path = (".",) if found[0] == "." else tuple(found[0].split("."))
        filters = []
        has_default = False
        literal = ""
        position = found.end()
        while position < len(source):
            name, arguments, position = self._filter(source, position, start)
            filters.append((FILTERS[name], arguments))
            has_default = has_default or name in ("default", "d")
            literal = ":".join([LITERALS[name], *map(str, arguments)]) if name in LITERALS else ""
        return Expression(source, path, tuple(filters), has_default, literal)

    def _filter(self, source: str, position: int, start: int) -> tuple[str, tuple[Any, ...], int]:
        found = _FILTER.match(source, position)
        if found is None:
            raise self._problem(f"{{{{{source}}}}} is not understood from {source[position:]!r} on", at=start)
        name = found[1]
        position = found.end()
        if name not in FILTERS:
            known = ", ".join(sorted(FILTERS))
            raise self._problem(
                f"unknown filter {name!r}{hint_similar(name, list(FILTERS))}", at=start, fix=f"use one of {known}"
            )
        if not source.startswith("(", position):
            return name, (), position
        arguments: list[Any] = []
        position += 1
        while not source.startswith(")", position):
            argument = _ARGUMENT.match(source, position)
            if argument is None:
                raise self._problem(f"{{{{{source}}}}}: arguments of {name} must be literals", at=start)
            arguments.append(_literal_of(argument))
            position = argument.end() + source.startswith(",", argument.end())
        return name, tuple(arguments), position + 1


def _literal_of(match: re.Match[str]) -> Any:
    single, double, number, word = match.groups()
    if word is not None:
        return _WORDS[word.lower()]
    if number is not None:
        return float(number) if "." in number else int(number)
    return re.sub(r"\\(.)", r"\1", single if single is not None else double)
