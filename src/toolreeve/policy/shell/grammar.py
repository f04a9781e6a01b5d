"""How does bash read a command? A tree-sitter tree, turned into the closed set of forms of `syntax`.

Never guess: a node type that is not listed, text between nodes that no node covers, or an error anywhere makes the
command `Opaque`.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from toolreeve.core.bash import masked
from toolreeve.policy.shell.scan import PLAIN, Unreadable, restore, scan
from toolreeve.policy.shell.syntax import (
    Assignment,
    Branch,
    Declaration,
    Group,
    Hole,
    Loop,
    Node,
    Opaque,
    Part,
    Pipeline,
    RawWord,
    Redirect,
    Redirected,
    Script,
    Simple,
    Step,
    Template,
    Test,
)

if TYPE_CHECKING:
    from tree_sitter import Node as Branching
    from tree_sitter import Parser

LONGEST_BYTES = 64 * 1024
_DEEPEST = 40
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f\x80-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ufeff\ud800-\udfff]"
)
_JOINED_LINES = re.compile(r"(?<![ \t\n])\\\n|#[^\n]*\\\n")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS = frozenset(
    "word string raw_string ansi_c_string concatenation number simple_expansion expansion command_substitution "
    "process_substitution brace_expression arithmetic_expansion".split()
)
_EXPANSIONS = frozenset(
    "expansion simple_expansion command_substitution process_substitution arithmetic_expansion".split()
)
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_OPERATORS = frozenset((";", "&", "\n"))
_RESERVED = frozenset("if then elif else fi for while until do done case esac in select function { } ]] coproc".split())
_BEFORE_DESCRIPTOR = frozenset(("", " ", "\t", "\n", ";", "|", "&", "(", ")", "}", ">", "<"))
_BEFORE_COMMENT = frozenset(("", " ", "\t", "\n", ";", "|", "&", "(", ")"))
_AFTER_TEST = frozenset(("", " ", "\t", "\n", ";", "|", "&", ")", ">", "<"))
_OUTPUTS = frozenset((">", ">>", "<", "&>", "&>>", ">&", "<&", ">|"))


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(command: str) -> Script:
    """The command's forms; what cannot be read at all is a script of one `Opaque`."""
    try:
        return _Reader(command).script()
    except Unreadable as problem:
        return Script((Step(Opaque(str(problem), command), ";"),))
    except RecursionError:
        return Script((Step(Opaque("nested too deeply", command), ";"),))


class _Reader:
    __slots__ = ("_depth", "_root", "_text")

    def __init__(self, command: str) -> None:
        if len(command) > LONGEST_BYTES:
            raise Unreadable("longer than 64 KB")
        if _UNSEEN.search(command):
            raise Unreadable("a control or invisible character")
        if "\\\n" in command and _JOINED_LINES.search(command):
            raise Unreadable("a line continued in the middle of a word")
        source = command.encode()
        self._root = _parser().parse(masked(source)).root_node
        if self._root.has_error:
            raise Unreadable("not a complete bash command")
        self._text = source.decode("latin-1")
        self._depth = 0

    def script(self) -> Script:
        return self._statements(self._root.children, 0, len(self._text))

    def _covered(self, children: Iterable["Branching"], start: int, end: int) -> Iterator["Branching"]:
        """The children, once it is sure that nothing but blanks stands between them."""
        for child in children:
            self._blank(start, child.start_byte)
            if child.type == "comment" and self._text[child.start_byte - 1 : child.start_byte] not in _BEFORE_COMMENT:
                raise Unreadable("a `#` inside a word")
            start = child.end_byte
            yield child
        self._blank(start, end)

    def _all(self, node: "Branching") -> list["Branching"]:
        return list(self._covered(node.children, node.start_byte, node.end_byte))

    def _blank(self, start: int, end: int) -> None:
        if end - start > 1 or (end > start and self._text[start] not in " \n\t"):
            gap = self._text[start:end].replace("\\\n", "")
            if gap.strip(" \t\n"):
                raise Unreadable("text that the parser passed over")

    def _statements(self, children: Iterable["Branching"], start: int, end: int) -> Script:
        steps: list[Step] = []
        for child in self._covered(children, start, end):
            kind = child.type
            if kind in _OPERATORS:
                if steps and kind == "&":
                    steps[-1] = Step(steps[-1].node, "&")
            elif kind == "list":
                steps.extend(self._list(child))
            elif kind != "comment":
                steps.append(Step(self._statement(child), ";"))
        return Script(tuple(steps))

    def _list(self, node: "Branching") -> list[Step]:
        """`a && b || c` is a list inside a list, as deep as it is long: read from the right, without recursion."""
        steps: list[Step] = []
        operator = ";"
        pending = [node]
        while pending:
            current = pending.pop()
            if current.type == "list":
                pending.extend(self._covered(current.children, current.start_byte, current.end_byte))
            elif current.type in ("&&", "||"):
                operator = current.type
            elif current.type not in ("comment", "\n"):
                steps.append(Step(self._statement(current), operator))
                operator = ";"
        return steps[::-1]

    def _statement(self, node: "Branching") -> Node:
        form = _FORMS.get(node.type)
        if form is None:
            return Opaque(f"`{node.type.replace('_', ' ')}` is not a plain command", self._source(node))
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Unreadable("nested too deeply")
        try:
            return form(self, node)
        except Unreadable as problem:
            return Opaque(str(problem), self._source(node))
        finally:
            self._depth -= 1

    def _source(self, node: "Branching") -> str:
        return restore(self._text[node.start_byte : node.end_byte])

    def command(self, node: "Branching") -> Node:
        words: list[RawWord] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        ended = -1
        for child in self._all(node):
            kind = child.type
            # Bash ends a word only at a blank or an operator; the parser sometimes sees two words in one.
            if child.start_byte == ended and kind not in _REDIRECTS:
                return Opaque("words that the parser tore apart", self._source(node))
            ended = child.end_byte
            if kind in _WORDS:
                words.append(self._word(child))
            elif kind == "command_name":
                words.append(self._word(child.children[0]))
            elif kind == "variable_assignment":
                assignments.append(self._assignment(child))
            elif kind in _REDIRECTS:
                self._redirect(child, redirects, words)
            elif kind in ("[", "]", "==", "=~", "$"):
                words.append(self._source(child))
            else:
                return Opaque(f"`{kind}` inside a command", self._source(node))
        if words and words[0] in _RESERVED:
            return Opaque("a reserved word where a command is expected", self._source(node))
        return Simple(tuple(words), tuple(assignments), tuple(redirects), self._source(node))

    def _word(self, node: "Branching") -> RawWord:
        start, end = node.start_byte, node.end_byte
        text = self._text[start:end]
        kind = node.type
        if PLAIN.fullmatch(text):
            return restore(text)
        if kind == "raw_string" and text.count("'") == 2:
            return restore(text[1:-1])
        if kind not in _WORDS:
            raise Unreadable(f"`{kind}` as a word")
        return scan(text, start, lambda at, form: self._expansion(node, at, form))

    def _expansion(self, node: "Branching", at: int, form: str) -> tuple[int, Script | None]:
        for found in _expansions(node):
            if found.start_byte == at and found.type == form:
                return found.end_byte, self._inside(found)
        raise Unreadable("an expansion that the parser did not see")

    def _inside(self, node: "Branching") -> Script:
        children = node.children
        if children[0].type == "`" and re.search(r"\\[\\$`]", self._text[node.start_byte : node.end_byte]):
            raise Unreadable("an escape inside backticks")
        if children[0].type not in ("$(", "`", "<(", ">("):
            raise Unreadable("a substitution that is not plain")
        return self._statements(children[1:-1], children[0].end_byte, children[-1].start_byte)

    def _assignment(self, node: "Branching") -> Assignment:
        name, *rest = self._all(node)
        plain = name.type == "variable_name" and _NAME.fullmatch(self._source(name)) is not None
        if not plain or not rest or rest[0].type != "=" or name.start_byte != node.start_byte:
            raise Unreadable("an assignment that is not plain")
        if len(rest) == 1:
            return Assignment(self._source(name), ("",))
        if rest[1].type == "array":
            inner = [child for child in self._all(rest[1]) if child.type not in ("(", ")", "comment")]
            if any(self._text[child.start_byte] == "[" for child in inner):
                raise Unreadable("an array with subscripts, which are evaluated")
            return Assignment(self._source(name), tuple(self._word(child) for child in inner), array=True)
        return Assignment(self._source(name), (self._word(rest[1]),))

    def bare_assignments(self, node: "Branching") -> Node:
        found = node.children if node.type == "variable_assignments" else [node]
        return Simple((), tuple(self._assignment(child) for child in found), (), self._source(node))

    def declaration(self, node: "Branching") -> Node:
        flags: list[str] = []
        assignments: list[Assignment] = []
        for child in self._covered(node.children[1:], node.children[0].end_byte, node.end_byte):
            if child.type == "variable_assignment":
                assignments.append(self._assignment(child))
            else:
                word = self._word(child) if child.type in _WORDS else self._source(child)
                if not isinstance(word, str):
                    raise Unreadable("a declaration that is not plain")
                flags.append(word)
        return Declaration(self._source(node.children[0]), tuple(flags), tuple(assignments), self._source(node))

    def unset(self, node: "Branching") -> Node:
        names = (
            self._source(child) if child.type == "variable_name" else self._word(child) for child in self._all(node)[1:]
        )
        return Simple(("unset", *names), (), (), self._source(node))

    def pipeline(self, node: "Branching") -> Node:
        stages: list[Node] = []
        for child in self._all(node):
            if child.type not in ("|", "|&", "comment", "\n"):
                stages.append(self._statement(child))
        return Pipeline(tuple(stages))

    def redirected(self, node: "Branching") -> Node:
        body: Node | None = None
        redirects: list[Redirect] = []
        extra: list[RawWord] = []
        following: list[Step] = []
        for child in self._all(node):
            if child.type in _REDIRECTS:
                following.extend(self._redirect(child, redirects, extra))
            else:
                body = self._statement(child)
        joined = _attach(body or Simple(()), tuple(redirects), tuple(extra))
        return Script((Step(joined, ";"), *following)) if following else joined

    def listed(self, node: "Branching") -> Node:
        return Script(tuple(self._list(node)))

    def _redirect(self, node: "Branching", redirects: list[Redirect], words: list[RawWord]) -> list[Step]:
        if node.type == "heredoc_redirect":
            return self._heredoc(node, redirects, words)
        children = node.children
        descriptor = ""
        if children[0].type == "file_descriptor":
            descriptor, children = self._source(children[0]), children[1:]
            if not descriptor.isdigit() or self._text[node.start_byte - 1 : node.start_byte] not in _BEFORE_DESCRIPTOR:
                raise Unreadable("a redirection that is not plain")
        operator = children[0].type
        if node.type == "herestring_redirect":
            (word,) = self._covered(children[1:], children[0].end_byte, node.end_byte)
            redirects.append(Redirect("<<<", descriptor, self._word(word)))
            return []
        if operator not in _OUTPUTS or len(children) < 2:
            raise Unreadable(f"the redirection `{operator}`")
        target, *rest = self._covered(children[1:], children[0].end_byte, node.end_byte)
        if any(left.end_byte == right.start_byte for left, right in pairwise((target, *rest))):
            raise Unreadable("words that the parser tore apart")
        redirects.append(Redirect(operator, descriptor, self._word(target)))
        words.extend(self._word(child) for child in rest)
        return []

    def _heredoc(self, node: "Branching", redirects: list[Redirect], words: list[RawWord]) -> list[Step]:
        following: list[Step] = []
        quoted = False
        self._check_end(node)
        for child in self._all(node):
            kind = child.type
            if kind == "heredoc_start":
                quoted = not re.fullmatch(r"\w+", self._source(child))
            elif kind == "heredoc_body":
                redirects.append(Redirect("<<", "", "" if quoted else self._heredoc_body(child)))
            elif kind in _REDIRECTS:
                following.extend(self._redirect(child, redirects, words))
            elif kind in _WORDS:
                words.append(self._word(child))
            elif kind in _FORMS:
                following.append(Step(self._statement(child), ";"))
            elif kind not in ("<<", "<<-", "heredoc_end", "&&", "||", "|", "|&", "file_descriptor", ";", "\n"):
                raise Unreadable("a heredoc that is not plain")
        return following

    def _check_end(self, node: "Branching") -> None:
        """Where the body ends is found again here: what follows it is commands."""
        parts = {child.type: child for child in node.children}
        start, body, end = (parts.get(f"heredoc_{part}") for part in ("start", "body", "end"))
        if start is None or end is None or sum(child.type == "heredoc_redirect" for child in node.parent.children) > 1:  # type: ignore[union-attr]
            raise Unreadable("a heredoc that is not plain")
        mark = re.fullmatch(r"(['\"]?)(\w+)\1|\\(\w+)", self._source(start))
        name = mark and (mark.group(2) or mark.group(3))
        lines = self._text[body.start_byte : end.start_byte].split("\n") if body is not None else []
        line = self._text[self._text.rfind("\n", 0, end.start_byte) + 1 :].partition("\n")[0]
        indent = "\t" if "<<-" in parts else ""
        if name is None or line.lstrip(indent) != name or any(text.lstrip("\t") == name for text in lines):
            raise Unreadable("a heredoc whose end is not clear")

    def _heredoc_body(self, node: "Branching") -> RawWord:
        body = re.sub(r"\\[\\$`]", "", self._text[node.start_byte : node.end_byte])
        if "`" in body or "$(" in body or "${" in body or "$[" in body:
            raise Unreadable("an expansion in a heredoc")
        return Template((Part(Hole.PARAMETER, ""),), "") if "$" in body else ""

    def group(self, node: "Branching") -> Node:
        children = node.children
        if children[0].type not in ("{", "("):
            raise Unreadable("an arithmetic command")
        body = self._statements(children[1:-1], children[0].end_byte, children[-1].start_byte)
        if not body.steps:
            raise Unreadable("a group without a command")
        return Group(body, subshell=children[0].type == "(")

    def negated(self, node: "Branching") -> Node:
        _, *inner = self._all(node)
        if len(inner) != 1:
            raise Unreadable("a negation that is not plain")
        return self._statement(inner[0])

    def loop(self, node: "Branching") -> Node:
        variable, values, condition = "", [], None
        head: list[Branching] = []
        children = node.children
        if children[0].type == "select":
            raise Unreadable("`select` waits for a person")
        for child in self._covered(children[1:], children[0].end_byte, node.end_byte):
            if child.type == "variable_name":
                variable = self._source(child)
            elif child.type in _WORDS and variable:
                values.append(self._word(child))
            elif child.type == "do_group":
                body = self._keyword_body(child)
            elif child.type not in ("in", ";", "\n"):
                head.append(child)
        if not variable:
            condition = self._statements(head, head[0].start_byte, head[-1].end_byte) if len(head) == 1 else None
            if condition is None:
                raise Unreadable("a loop whose condition is not plain")
        elif head:
            raise Unreadable("a loop that is not plain")
        return Loop(variable, tuple(values), condition, body)

    def _keyword_body(self, node: "Branching") -> Script:
        children = node.children
        return self._statements(children[1:-1], children[0].end_byte, children[-1].start_byte)

    def branch(self, node: "Branching") -> Node:
        """`if`: every statement, condition or body, may run; which is which does not change what may happen."""
        scripts: list[Script] = []
        pending: list[Branching] = []
        for child in self._all(node):
            if child.type in ("if", "then", "fi", "elif", "else", "elif_clause", "else_clause"):
                if pending:
                    scripts.append(self._statements(pending, pending[0].start_byte, pending[-1].end_byte))
                    pending = []
                if child.type.endswith("_clause"):
                    scripts.append(Script((Step(self.branch(child), ";"),)))
            else:
                pending.append(child)
        if pending:
            scripts.append(self._statements(pending, pending[0].start_byte, pending[-1].end_byte))
        return Branch((), (), tuple(scripts))

    def case(self, node: "Branching") -> Node:
        words: list[RawWord] = []
        arms: list[Script] = []
        for child in self._all(node):
            if child.type in _WORDS:
                words.append(self._word(child))
            elif child.type == "case_item":
                arms.append(self._case_arm(child))
            elif child.type not in ("case", "in", "esac", ";", "\n", "comment"):
                raise Unreadable("a case that is not plain")
        return Branch(tuple(words), (), tuple(arms))

    def _case_arm(self, node: "Branching") -> Script:
        children = self._all(node)
        close = next(index for index, child in enumerate(children) if child.type == ")")
        for pattern in children[:close]:
            self._inert(pattern)
        end = children[-1] if children[-1].type in (";;", ";&", ";;&") else None
        body = children[close + 1 : -1] if end is not None else children[close + 1 :]
        return self._statements(body, children[close].end_byte, end.start_byte if end is not None else node.end_byte)

    def _inert(self, node: "Branching") -> None:
        if re.search(r"[$`<>]", self._text[node.start_byte : node.end_byte]):
            raise Unreadable("a pattern that expands")

    def test(self, node: "Branching") -> Node:
        children = self._all(node)
        words: list[RawWord] = []
        operators: list[str] = []
        if children[0].type not in ("[", "[["):
            raise Unreadable("an arithmetic command")
        opened, closed = self._text[children[0].end_byte], self._text[children[-1].start_byte - 1]
        following = self._text[node.end_byte : node.end_byte + 1]
        if not opened.isspace() or not closed.isspace() or following not in _AFTER_TEST:
            raise Unreadable("a pattern where a command is expected")
        for child in children[1:-1]:
            self._expression(child, words, operators)
        return Test(tuple(words), tuple(operators), children[0].type == "[[", self._source(node))

    def _expression(self, node: "Branching", words: list[RawWord], operators: list[str]) -> None:
        kind = node.type
        if kind in _WORDS:
            words.append(self._word(node))
        elif kind in ("unary_expression", "binary_expression", "parenthesized_expression", "negated_expression"):
            for child in self._all(node):
                self._expression(child, words, operators)
        elif kind in ("regex", "extglob_pattern"):
            self._inert_pattern(node)
        elif not node.children:
            operators.append(self._source(node))
        else:
            raise Unreadable("a test that is not plain")

    def _inert_pattern(self, node: "Branching") -> None:
        if re.search(r"\$[({A-Za-z_\['\"]|[`<>]", self._text[node.start_byte : node.end_byte]):
            raise Unreadable("a pattern that expands")


def _attach(body: Node, redirects: tuple[Redirect, ...], words: tuple[RawWord, ...]) -> Node:
    """Give redirections, and words written after them, to the command that bash gives them to: the last one."""
    match body:
        case Simple():
            return Simple(body.words + words, body.assignments, body.redirects + redirects, body.source)
        case Pipeline():
            return Pipeline((*body.stages[:-1], _attach(body.stages[-1], redirects, words)))
        case Script():
            last = body.steps[-1]
            return Script((*body.steps[:-1], Step(_attach(last.node, redirects, words), last.operator)))
        case _ if words:
            raise Unreadable("words after a redirection")
        case _:
            return Redirected(body, redirects)


def _expansions(node: "Branching") -> Iterator["Branching"]:
    """The outermost expansions inside a word."""
    if node.type in _EXPANSIONS:
        yield node
        return
    for child in node.children:
        yield from _expansions(child)


_FORMS = {
    "command": _Reader.command,
    "redirected_statement": _Reader.redirected,
    "pipeline": _Reader.pipeline,
    "list": _Reader.listed,
    "variable_assignment": _Reader.bare_assignments,
    "variable_assignments": _Reader.bare_assignments,
    "declaration_command": _Reader.declaration,
    "unset_command": _Reader.unset,
    "subshell": _Reader.group,
    "compound_statement": _Reader.group,
    "negated_command": _Reader.negated,
    "for_statement": _Reader.loop,
    "while_statement": _Reader.loop,
    "if_statement": _Reader.branch,
    "case_statement": _Reader.case,
    "test_command": _Reader.test,
}
