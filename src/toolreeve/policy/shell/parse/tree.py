"""Reader of the tree-sitter tree of one command.

Never guess: a node type that no form is given for, text between nodes that no node covers, or an error anywhere makes
the command `Opaque`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from toolreeve.core.bash_grammar import masked
from toolreeve.policy.shell.parse.lexemes import QUOTED
from toolreeve.policy.shell.parse.scanner import PLAIN, Unreadable, restore, scan
from toolreeve.policy.shell.parse.syntax import Node, Opaque, RawWord, ShellScript, Step

if TYPE_CHECKING:
    from tree_sitter import Node as TreeNode
    from tree_sitter import Parser

Form = Callable[["TreeReader", "TreeNode"], Node]
"""Converts the node of a statement."""

WORDS = frozenset(
    "word string raw_string ansi_c_string concatenation number simple_expansion expansion command_substitution "
    "process_substitution brace_expression arithmetic_expansion".split()
)
_EXPANSIONS = frozenset(
    "expansion simple_expansion command_substitution process_substitution arithmetic_expansion".split()
)
LINE = " \t"
LINES = " \t\n"
"""Blanks between words: within a line, and where a line end has no meaning."""
_DEEPEST = 40
_MOST_TOKENS = 3_000
_MOST_SIGNS = 700
_TOKEN = re.compile(r"\w++|[^\w\s]")
_SIGN = re.compile(r"[^\w\s]")
_OPERATORS = frozenset((";", "&", "\n"))
_KEYWORDS = frozenset(
    "if then elif else fi for while until do done case in esac select function unset unsetenv ! { [[".split()
)
_AFTER_KEYWORD = " \t\n;&|()<>"
_BEFORE_COMMENT = frozenset(("", " ", "\t", "\n", ";", "|", "&", "("))


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _is_too_costly(command: str) -> bool:
    """Whether the parser, whose error recovery is superlinear, could be kept busy by the command."""
    if len(command) <= _MOST_SIGNS:
        return False
    bare = QUOTED.sub("_", command)
    return sum(1 for _ in _TOKEN.finditer(bare)) > _MOST_TOKENS or sum(1 for _ in _SIGN.finditer(bare)) > _MOST_SIGNS


class TreeReader:
    """`text` has one character a byte, so that byte offsets of the tree are indexes into it."""

    __slots__ = ("_depth", "_root", "forms", "text")

    def __init__(self, command: str, forms: Mapping[str, Form]) -> None:
        if _is_too_costly(command):
            raise Unreadable("too much in one command to be read with certainty")
        source = command.encode()
        self._root = _parser().parse(masked(source)).root_node
        if self._root.has_error:
            raise Unreadable("not complete, or a form of bash that is not read")
        self.text = source.decode("latin-1")
        self.forms = forms
        self._depth = 0

    def script(self) -> ShellScript:
        return self.statements(self._root.children, 0, len(self.text))

    def source(self, node: "TreeNode") -> str:
        return restore(self.text[node.start_byte : node.end_byte])

    def children(self, node: "TreeNode") -> list["TreeNode"]:
        return list(self.covered(node.children, node.start_byte, node.end_byte))

    def line(self, node: "TreeNode") -> list["TreeNode"]:
        """The children of a node that for bash ends with its line; the parser sometimes reads on."""
        return list(self.covered(node.children, node.start_byte, node.end_byte, LINE))

    def covered(
        self, children: Iterable["TreeNode"], start: int, end: int, blanks: str = LINES
    ) -> Iterator["TreeNode"]:
        """The children, with a check that there is nothing but blanks between them."""
        before = ""
        for child in children:
            kind, begins, ends = child.type, child.start_byte, child.end_byte
            self.check_blank(start, begins, blanks)
            if kind == "comment" and self.text[begins - 1 : begins] not in _BEFORE_COMMENT:
                raise Unreadable("a `#` inside a word")
            # Bash ends a word only at a blank or an operator; the parser sometimes sees two words in one.
            if kind in WORDS and before in WORDS and begins == start:
                raise Unreadable("words that the parser split")
            if not child.is_named and kind != "\n" and self.text[begins:ends] != kind:
                raise Unreadable("an operator that the parser misread")
            if begins == start and before in _KEYWORDS and self.text[begins] not in _AFTER_KEYWORD:
                raise Unreadable("a word that begins like a keyword")
            before = kind
            start = ends
            yield child
        self.check_blank(start, end, blanks)

    def check_blank(self, start: int, end: int, blanks: str) -> None:
        if end - start > 1 or (end > start and self.text[start] not in blanks):
            gap = self.text[start:end].replace("\\\n", "")
            if gap.strip(blanks):
                raise Unreadable("text that the parser skipped")

    def statements(self, children: Iterable["TreeNode"], start: int, end: int) -> ShellScript:
        steps: list[Step] = []
        for child in self.covered(children, start, end):
            kind = child.type
            if kind in _OPERATORS:
                if steps and kind == "&":
                    steps[-1] = Step(steps[-1].node, "&")
            elif kind == "list":
                steps.extend(self.steps(child))
            elif kind != "comment":
                steps.append(Step(self.statement(child), ";"))
        return ShellScript(tuple(steps))

    def between(self, children: Sequence["TreeNode"]) -> ShellScript:
        """The statements inside a pair of keywords or brackets."""
        return self.statements(children[1:-1], children[0].end_byte, children[-1].start_byte)

    def steps(self, node: "TreeNode") -> list[Step]:
        """`a && b || c` is a list inside a list, as deep as it is long: read from the right, without recursion."""
        steps: list[Step] = []
        operator = ";"
        pending = [node]
        while pending:
            current = pending.pop()
            kind = current.type
            if kind == "list":
                pending.extend(self.covered(current.children, current.start_byte, current.end_byte))
            elif kind in ("&&", "||"):
                operator = kind
            elif kind not in ("comment", "\n"):
                steps.append(Step(self.statement(current), operator))
                operator = ";"
        return steps[::-1]

    def statement(self, node: "TreeNode") -> Node:
        form = self.forms.get(node.type)
        if form is None:
            return Opaque(f"`{node.type.replace('_', ' ')}` is not a plain command", self.source(node))
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable("nested too deeply")
        try:
            return form(self, node)
        except Unreadable as problem:
            return Opaque(str(problem), self.source(node))
        finally:
            self._depth -= 1

    def word(self, node: "TreeNode") -> RawWord:
        start = node.start_byte
        text = self.text[start : node.end_byte]
        if PLAIN.fullmatch(text):
            return restore(text)
        kind = node.type
        if kind == "raw_string" and text.count("'") == 2:
            return restore(text[1:-1])
        if kind not in WORDS:
            raise Unreadable(f"`{kind}` as a word")
        expansions: dict[int, TreeNode] = {}

        def inside(at: int, form: str) -> tuple[int, ShellScript | None]:
            expansions.update({} if expansions else {found.start_byte: found for found in _expansions(node)})
            found = expansions.get(at)
            if found is None or found.type != form:
                raise Unreadable("an expansion that the parser did not see")
            return found.end_byte, self._inside(found)

        return scan(text, start, inside)

    def _inside(self, node: "TreeNode") -> ShellScript:
        children = node.children
        text = self.text[node.start_byte : node.end_byte]
        # Bash ends them at the next backtick, whatever it stands in.
        if children[0].type == "`" and (text.count("`") != 2 or re.search(r"\\[\\$]", text)):
            raise Unreadable("an escape or another backtick inside backticks")
        if children[0].type not in ("$(", "`", "<(", ">("):
            raise Unreadable("a substitution that is not plain")
        return self.between(children)


def _expansions(node: "TreeNode") -> Iterator["TreeNode"]:
    """The outermost expansions inside a word."""
    if node.type in _EXPANSIONS:
        yield node
        return
    for child in node.children:
        yield from _expansions(child)
