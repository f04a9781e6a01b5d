"""Compound commands: pipelines, groups, loops, branches and tests."""

import re
from typing import TYPE_CHECKING

from toolreeve.policy.shell.parse.redirects import attach
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import (
    Branch,
    Expansion,
    Group,
    Loop,
    Negated,
    Node,
    Part,
    RawWord,
    Redirect,
    ShellPipeline,
    ShellScript,
    Step,
    Template,
    Test,
)
from toolreeve.policy.shell.parse.tree import WORDS, TreeReader

if TYPE_CHECKING:
    from tree_sitter import Node as TreeNode

_PARAMETERS = Template((Part(Expansion.VARIABLE, "@", quoted=True),), '"$@"')
"""What a `for` without `in` iterates over."""
_OPERATORS = re.compile(r"-[A-Za-z]|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef)|==?|!=?")
_OPERATORS_OF_BASH = re.compile(rf"{_OPERATORS.pattern}|=~|&&|\|\||[<>()]")
_PROCESS = re.compile(r"[<>]\(")
_AFTER_TEST = frozenset(("", " ", "\t", "\n", ";", "|", "&", ")", ">", "<"))


def pipeline(reader: TreeReader, node: "TreeNode") -> Node:
    stages: list[Node] = []
    for child in reader.children(node):
        if child.type == "|&":
            if not stages:
                raise Unreadable("a pipe from nowhere")
            stages[-1] = attach(stages[-1], (Redirect(">&", "2", "1"),), ())
        elif child.type not in ("|", "comment", "\n"):
            stages.append(reader.statement(child))
    return ShellPipeline(tuple(stages))


def listed(reader: TreeReader, node: "TreeNode") -> Node:
    return ShellScript(tuple(reader.steps(node)))


def group(reader: TreeReader, node: "TreeNode") -> Node:
    children = node.children
    if children[0].type not in ("{", "("):
        raise Unreadable("an arithmetic command")
    if children[0].type == "{" and not reader.text[children[0].end_byte].isspace():
        raise Unreadable("a brace that begins a name")
    body = reader.between(children)
    if not body.steps:
        raise Unreadable("a group without a command")
    return Group(body, subshell=children[0].type == "(")


def negated(reader: TreeReader, node: "TreeNode") -> Node:
    _, *inner = reader.line(node)
    if len(inner) != 1:
        raise Unreadable("a negation that is not plain")
    return Negated(reader.statement(inner[0]))


def loop(reader: TreeReader, node: "TreeNode") -> Node:
    variable = ""
    condition = None
    values: list[RawWord] = [_PARAMETERS]
    head: list[TreeNode] = []
    children = node.children
    if children[0].type == "select":
        raise Unreadable("`select` waits for a person")
    if children[1].start_byte == children[0].end_byte:
        raise Unreadable("a word that begins like a keyword")
    for child in reader.covered(children[1:], children[0].end_byte, node.end_byte):
        if child.type == "variable_name":
            variable = reader.source(child)
        elif child.type in WORDS and variable:
            values.append(reader.word(child))
        elif child.type == "do_group":
            body = reader.between(child.children)
        elif child.type == "in":
            values = []
        elif child.type not in (";", "\n"):
            head.append(child)
    if not variable:
        condition = reader.statements(head, head[0].start_byte, head[-1].end_byte) if len(head) == 1 else None
        if condition is None:
            raise Unreadable("a loop whose condition is not plain")
    elif head:
        raise Unreadable("a loop that is not plain")
    return Loop(variable, tuple(values), condition, body)


def branch(reader: TreeReader, node: "TreeNode") -> Node:
    """`if`: every statement, condition or body, may run; which is which does not change what may happen."""
    scripts: list[ShellScript] = []
    pending: list[TreeNode] = []
    for child in reader.children(node):
        if child.type in ("if", "then", "fi", "elif", "else", "elif_clause", "else_clause"):
            scripts.extend(_together(reader, pending))
            pending = []
            if child.type.endswith("_clause"):
                scripts.append(ShellScript((Step(branch(reader, child), ";"),)))
        else:
            pending.append(child)
    scripts.extend(_together(reader, pending))
    return Branch((), (), tuple(scripts))


def _together(reader: TreeReader, nodes: list["TreeNode"]) -> list[ShellScript]:
    return [reader.statements(nodes, nodes[0].start_byte, nodes[-1].end_byte)] if nodes else []


def case(reader: TreeReader, node: "TreeNode") -> Node:
    words: list[RawWord] = []
    arms: list[ShellScript] = []
    for child in reader.children(node):
        if child.type in WORDS:
            words.append(reader.word(child))
        elif child.type == "case_item":
            arms.append(_case_arm(reader, child))
        elif child.type not in ("case", "in", "esac", ";", "\n", "comment"):
            raise Unreadable("a case that is not plain")
    return Branch(tuple(words), (), tuple(arms))


def _case_arm(reader: TreeReader, node: "TreeNode") -> ShellScript:
    children = reader.children(node)
    close = next(index for index, child in enumerate(children) if child.type == ")")
    for pattern in children[:close]:
        _inert(reader, pattern)
    end = children[-1] if children[-1].type in (";;", ";&", ";;&") else None
    body = children[close + 1 : -1] if end is not None else children[close + 1 :]
    return reader.statements(body, children[close].end_byte, end.start_byte if end is not None else node.end_byte)


def _inert(reader: TreeReader, node: "TreeNode") -> None:
    if re.search(r"[$`<>]", reader.text[node.start_byte : node.end_byte]):
        raise Unreadable("a pattern that expands")


def test(reader: TreeReader, node: "TreeNode") -> Node:
    children = reader.line(node)
    words: list[RawWord] = []
    operators: list[str] = []
    if children[0].type not in ("[", "[["):
        raise Unreadable("an arithmetic command")
    opened, closed = reader.text[children[0].end_byte], reader.text[children[-1].start_byte - 1]
    following = reader.text[node.end_byte : node.end_byte + 1]
    if not opened.isspace() or not closed.isspace() or following not in _AFTER_TEST:
        raise Unreadable("a pattern where a command is expected")
    for child in children[1:-1]:
        _expression(reader, child, words, operators)
    allowed = _OPERATORS_OF_BASH if children[0].type == "[[" else _OPERATORS
    if not all(map(allowed.fullmatch, operators)) or _PROCESS.search(reader.text, node.start_byte, node.end_byte):
        raise Unreadable("a test that is not plain")
    return Test(tuple(words), tuple(operators), children[0].type == "[[", reader.source(node))


def _expression(reader: TreeReader, node: "TreeNode", words: list[RawWord], operators: list[str]) -> None:
    kind = node.type
    if kind in WORDS:
        words.append(reader.word(node))
    elif kind in ("unary_expression", "binary_expression", "parenthesized_expression", "negated_expression"):
        for child in reader.line(node):
            _expression(reader, child, words, operators)
    elif kind in ("regex", "extglob_pattern"):
        _inert_pattern(reader, node)
    elif not node.children:
        operators.append(reader.source(node))
    else:
        raise Unreadable("a test that is not plain")


def _inert_pattern(reader: TreeReader, node: "TreeNode") -> None:
    if re.search(r"\$[({A-Za-z_\['\"]|[`<>]", reader.text[node.start_byte : node.end_byte]):
        raise Unreadable("a pattern that expands")
