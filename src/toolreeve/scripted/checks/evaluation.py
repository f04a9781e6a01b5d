"""Evaluation check: where bash or its programs would evaluate a value.

Values are never part of the script's text, so nothing is parsed that the author did not write. What remains are places
that evaluate a second time: names of programs, `eval`, arithmetic, `sh -c`, interpreters. They are refused when the
tool is loaded. Fails closed: a script that the grammar does not understand is refused too.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from toolreeve.scripted.checks.check_site import CheckSite
from toolreeve.scripted.checks.commands import CommandCheck
from toolreeve.scripted.checks.data_flow import DIRECTORIES, DataFlow
from toolreeve.scripted.checks.grammar import parse_bash
from toolreeve.scripted.quoting import read_quoting
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.words import (
    ARRAY,
    EXPANSIONS,
    REFERENCE,
    Node,
    ValueHole,
    Word,
    has_braces,
    is_reference,
    text_of,
    walk,
)

Beginnings = dict[int, set[str]]
_NOT_WORDS = ("file_redirect", "herestring_redirect", "heredoc_redirect", "variable_assignment")
_QUOTES = ("string",)
_UNQUOTING = ("command_substitution", "process_substitution", "program")
_COMPARES_NUMBERS = re.compile(r"-(?:eq|ne|lt|le|gt|ge)$")
_OFFSET = re.compile(r"^\$\{[^:]*:(?![-=?+])(.*)\}$", re.DOTALL)
_INDIRECT = re.compile(r"^\$\{!(\w+)(?!\[[@*]\]\}|[*@]\})")
_NAMES_A_VARIABLE = (("printf", "-v"), ("test", "-v"), ("test", "-R"), ("[", "-v"), ("[", "-R"))
_TEST_OPERATORS = ("-v", "-R")
_NUMBER = 'turn it into a number first: printf -v n %d "$x"'
_SUBSTITUTES = re.compile(r"\$\(|\$\[|`")
_NAMES = ("variable_name", "special_variable_name", "word")
_PROMPTS = ("PROMPT_COMMAND", "PS0", "PS1", "PS2", "PS3", "PS4")
_MAX_DEPTH = 5


def find_beginnings(script: str, holes: Mapping[int, ValueHole]) -> Beginnings:
    """What the value of a hole, by its number, may not begin with. Raises TemplateProblem if it would be code."""
    if not any(hole.tainted for hole in holes.values()):
        return {}
    return _Inspector(script, holes).inspect()


class _Inspector:
    """`outer` are names, and `files` files, that are tainted already; `fed` is the taint of its input."""

    def __init__(
        self,
        script: str,
        holes: Mapping[int, ValueHole],
        *,
        outer: frozenset[str] = frozenset(),
        files: frozenset[str] = frozenset(),
        fed: str = "",
        depth: int = 0,
    ) -> None:
        self._root = parse_bash(script)
        self._script = script
        self._holes = holes
        self._outer = outer
        self._files = files
        self._fed = fed
        self._depth = depth
        self._beginnings: Beginnings = {}

    def inspect(self) -> Beginnings:
        self._require_quoted()
        self._flow = DataFlow(self._root, self._holes, self._outer, self._files)
        if self._fed:
            self._flow.feed(self._root, self._fed)
            self._flow.spread()
        self._commands = CommandCheck(self._flow, self._begin, self._nested)
        while self._check_all():
            self._flow.spread()
        return self._beginnings

    def _check_all(self) -> bool:
        """Returns whether the code of an inner shell has made more files suspect."""
        before = self._flow.size
        self._require_plain_variables()
        for node in walk(self._root):
            if (check := self._CHECKS.get(node.type)) is not None:
                check(self, node)
        if self._flow.unclear is not None:
            raise self._problem(self._flow.unclear, "a variable is set whose name is not fixed", "write the name")
        return self._flow.size > before

    def _nested(self, code: str, node: Node, site: CheckSite, names: frozenset[str]) -> None:
        """Code that a shell gets as an argument. The given names are tainted in it."""
        if self._depth >= _MAX_DEPTH:
            raise self._problem(node, "shells are nested too deeply here", "write it more simply")
        files = frozenset(self._flow.tainted_files)
        try:
            view = read_quoting(code).view
            inner = _Inspector(view, {}, outer=names, files=files, fed=site.fed, depth=self._depth + 1)
            inner.inspect()
            self._flow.take_files(inner._flow)
        except TemplateProblem as problem:
            raise self._problem(node, f"{problem.problem}, inside the code of a shell", problem.fix) from None

    def _require_plain_variables(self) -> None:
        """However the caller's text gets into a variable, some variables evaluate it."""
        named = [(text_of(node), node) for node in walk(self._root) if node.type in _NAMES]
        for name, node in [*named, *self._flow.filled.items()]:
            if name not in self._flow.names or name in self._outer:
                continue
            if name in DIRECTORIES and node.parent.type in EXPANSIONS:
                continue
            place = Word(node, ())
            self._commands.refuse_variable(name, place, "the caller's text")
            if name in self._flow.integers:
                raise self._problem(
                    node, f"{name} is an integer variable, which evaluates values", "do not declare it -i"
                )
            if name in self._flow.references:
                raise self._problem(node, f"{name} is a name reference, which evaluates values", "do not declare it -n")

    def _begin(self, word: Word, beginnings: tuple[str, ...]) -> None:
        """The hole at the start of a word may not begin with any of these."""
        leading = word.leading
        if leading is not None and leading.hole is not None and leading.hole.tainted:
            self._beginnings.setdefault(leading.hole.number, set()).update(beginnings)

    def _problem(self, node: Node, text: str, fix: str = "") -> TemplateProblem:
        return TemplateProblem(text, line=node.start_point.row + 1, fix=fix)

    def _refuse(self, node: Node, taint: str, why: str, fix: str = "") -> None:
        if taint:
            raise self._problem(node, f"{taint} {why}", fix)

    def _require_quoted(self) -> None:
        """Both parsers must agree: each reference is an expansion inside double quotes."""
        seen = 0
        for node in walk(self._root):
            if node.type == "expansion" and is_reference(node):
                around = node.parent
                while around.type not in _QUOTES:
                    if around.type in _UNQUOTING:
                        raise self._problem(node, "the quoting around a value is not understood", "quote it plainly")
                    around = around.parent
                seen += 1
        if seen != len(REFERENCE.findall(self._script)):
            raise self._problem(self._root, "the quoting around a value is not understood", "quote it plainly")

    def _command(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is None:
            return
        nodes = [name, *(each for each in node.children_by_field_name("argument") if each.type not in _NOT_WORDS)]
        for each in nodes[1:]:
            self._refuse(each, self._split(each), "is split into words", 'put it in double quotes: "$x"')
            if has_braces(each):
                self._refuse(each, self._flow.taint(each), "is part of a brace expansion", "write the words out")
        words = [self._flow.word(each) for each in nodes]
        own = [each for each in node.children if each.type == "variable_assignment" and self._flow.taint(each)]
        environment = text_of(own[0].child_by_field_name("name")) if own else ""
        self._commands.check(words, CheckSite(node=node, fed=self._flow.fed.get(node.id, ""), environment=environment))
        self._restrict(words[0].text or "", words[1:])

    def _split(self, word: Node) -> str:
        """A tainted variable that is unquoted."""
        parts = word.children if word.type == "concatenation" else (word,)
        for node in parts:
            if node.type in ("simple_expansion", "expansion") and not is_reference(node):
                return self._flow.taint(node)
        return ""

    def _restrict(self, name: str, arguments: list[Word]) -> None:
        """Builtins for which the beginning of a word decides what it means."""
        before = ""
        for index, word in enumerate(arguments):
            if name in ("test", "["):
                self._begin(word, _TEST_OPERATORS)
                if word.leading is not None and word.leading.hole is None and index + 1 < len(arguments):
                    taint = arguments[index + 1].taint if word.leading.taint else ""
                    self._refuse(
                        word.node, taint, "would be what a test of the caller's choice is about", "use [[ … ]]"
                    )
            if (name, before) in _NAMES_A_VARIABLE or (name == "printf" and re.match("-v.", word.shape, re.DOTALL)):
                self._refuse(word.node, self._naming(word.node), "would name a variable", "write the name yourself")
            if name == "printf" and index == 0:
                self._commands.begin(word, ("-",), "would be an option of printf")
            before = word.text or ""

    def _assignment(self, node: Node) -> None:
        name = text_of(node.child_by_field_name("name")).partition("[")[0]
        value = node.child_by_field_name("value")
        if value is None:
            return
        taint = self._flow.taint(value)
        word = self._flow.word(value)
        self._commands.refuse_variable(name, word, taint)
        if name in _PROMPTS and re.search(r"[$`]", word.shape):
            raise self._problem(node, f"{name} is expanded again where it is shown", "leave $ and ` out of it")
        if name in self._flow.integers:
            taint = self._flow.mentions(text_of(value))
            self._refuse(node, taint, f"would be evaluated: {name} is an integer variable", "do not declare it -i")
        if value.type == "array" and name not in self._flow.maps:
            for element in value.children:
                if text_of(element).startswith("["):
                    index = text_of(element).partition("]=")[0]
                    self._refuse(element, self._flow.mentions(index), "is in a subscript", "declare the array -A")

    def _naming(self, word: Node) -> str:
        """The taint in the name of a variable. Subscripts are evaluated even if they are quoted."""
        return self._flow.taint(word) or self._flow.mentions("".join(re.findall(r"\[.*", text_of(word))))

    def _declaration(self, node: Node) -> None:
        flags = self._flow.flags(node)
        for each in node.children:
            taint = self._flow.taint(each)
            if each.type != "variable_assignment":
                self._refuse(each, taint, "would name a variable", "write the name yourself")
            elif set(flags) & {"i", "n"}:
                taint = self._flow.mentions(text_of(each).partition("=")[2])
                self._refuse(each, taint, "would be evaluated by the declaration", "declare it without -i and -n")

    def _unset(self, node: Node) -> None:
        self._refuse(node, self._naming(node), "would name a variable", "write the name yourself")

    def _arithmetic(self, node: Node) -> None:
        text = text_of(node)
        if node.type == "compound_statement" and not text.startswith("(("):
            return
        if node.type == "c_style_for_statement":
            text = text.partition("do")[0]
        self._refuse(node, self._flow.mentions(text), "is evaluated by arithmetic", _NUMBER)

    def _subscript(self, node: Node) -> None:
        name, _, index = text_of(node).partition("[")
        if name != ARRAY and name not in self._flow.maps:
            self._refuse(node, self._flow.mentions(index), "is evaluated as a subscript", _NUMBER)

    def _test(self, node: Node) -> None:
        double = text_of(node).startswith("[[")
        for part in walk(node):
            operators = [text_of(each) for each in part.children if each.type == "test_operator"]
            if double and any(_COMPARES_NUMBERS.match(each) for each in operators):
                fix = "compare with [ … ], which takes numbers only"
                self._refuse(part, self._flow.mentions(text_of(part)), "is evaluated by [[ … ]]", fix)
            if any(each in ("-v", "-R") for each in operators):
                self._refuse(part, self._flow.mentions(text_of(part)), "would name a variable", 'use -n "$x"')
            if not double and part.type in ("string", "concatenation"):
                self._begin(self._flow.word(part), _TEST_OPERATORS)

    def _expansion(self, node: Node) -> None:
        text = text_of(node).strip()
        if is_reference(node):
            return
        if offset := _OFFSET.match(text):
            self._refuse(node, self._flow.mentions(offset[1]), "is evaluated as an offset", "use a fixed number")
        if (indirect := _INDIRECT.match(text)) and indirect[1] in self._flow.names:
            raise self._problem(node, f"${indirect[1]} would name a variable", "write the name yourself")
        if text.endswith("@P}"):
            self._refuse(node, self._flow.taint(node), "would be expanded as a prompt", "leave @P out")
        own = _unread(node)
        if _SUBSTITUTES.search(own):
            self._refuse(
                node, self._flow.mentions(own), "is in a substitution inside ${…}", "put the result into a variable"
            )

    _CHECKS: ClassVar[Mapping[str, Callable[[Any, Node], None]]] = {
        "command": _command,
        "variable_assignment": _assignment,
        "declaration_command": _declaration,
        "unset_command": _unset,
        "arithmetic_expansion": _arithmetic,
        "compound_statement": _arithmetic,
        "c_style_for_statement": _arithmetic,
        "subscript": _subscript,
        "test_command": _test,
        "expansion": _expansion,
    }


def _unread(expansion: Node) -> str:
    """What follows the variable in `${…}`, without the substitutions that the grammar has read: it takes some for plain
    text, and arithmetic for a subshell."""
    text: bytes = expansion.text
    for part in walk(expansion):
        substitutes = part.type in ("command_substitution", "process_substitution")
        if part.type == "arithmetic_expansion" or (substitutes and not part.text.startswith(b"$((")):
            start = part.start_byte - expansion.start_byte
            text = text[:start] + b" " * len(part.text) + text[start + len(part.text) :]
    return re.sub(r"^\s*\$\{[!#]?\w+", "", text.decode())
