"""Redirections, attached to the command that bash applies them to."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import (
    Node,
    RawWord,
    Redirect,
    Redirected,
    ShellPipeline,
    ShellScript,
    Simple,
    Step,
)
from toolreeve.policy.shell.parse.tree import LINE, TreeReader

if TYPE_CHECKING:
    from tree_sitter import Node as TreeNode

REDIRECTS = frozenset(("file_redirect", "herestring_redirect"))
_BEFORE_DESCRIPTOR = frozenset(("", " ", "\t", "\n", ";", "|", "&", "(", ")", "}", ">", "<"))
_TAKEN_FOR_WORD = re.compile(r"(?:\d|\{\w+\}|\{\w+\[[^\s]*\]\})\Z")
_LONGEST_DESCRIPTOR = 64
_OUTPUTS = frozenset((">", ">>", "<", "&>", "&>>", ">&", "<&", ">|"))


def redirected(reader: TreeReader, node: "TreeNode") -> Node:
    body: Node | None = None
    redirects: list[Redirect] = []
    extra: list[RawWord] = []
    for child in reader.line(node):
        if child.type in REDIRECTS:
            add_redirect(reader, child, redirects, extra)
        else:
            body = reader.statement(child)
    return attach(body or Simple(()), tuple(redirects), tuple(extra))


def add_redirect(reader: TreeReader, node: "TreeNode", redirects: list[Redirect], words: list[RawWord]) -> None:
    if _TAKEN_FOR_WORD.search(reader.text, max(0, node.start_byte - _LONGEST_DESCRIPTOR), node.start_byte):
        raise Unreadable("a redirection whose descriptor looks like a word")
    children = node.children
    descriptor = ""
    if children[0].type == "file_descriptor":
        descriptor, children = reader.source(children[0]), children[1:]
        if not descriptor.isdigit() or reader.text[node.start_byte - 1 : node.start_byte] not in _BEFORE_DESCRIPTOR:
            raise Unreadable("a redirection that is not plain")
    operator = children[0].type
    if node.type == "herestring_redirect":
        (word,) = reader.covered(children[1:], children[0].end_byte, node.end_byte, LINE)
        redirects.append(Redirect("<<<", descriptor, reader.word(word)))
        return
    if operator not in _OUTPUTS or len(children) < 2:
        raise Unreadable(f"the redirection `{operator}`")
    target, *rest = reader.covered(children[1:], children[0].end_byte, node.end_byte, LINE)
    if any(left.end_byte == right.start_byte for left, right in pairwise((target, *rest))):
        raise Unreadable("words that the parser split")
    if operator in (">&", "<&") and target.start_byte != children[0].end_byte:
        raise Unreadable("a descriptor that is named apart from its operator")
    redirects.append(Redirect(operator, descriptor, reader.word(target)))
    words.extend(reader.word(child) for child in rest)


def attach(body: Node, redirects: tuple[Redirect, ...], words: tuple[RawWord, ...]) -> Node:
    """Attach redirections, and words written after them, to the last command, as bash does."""
    match body:
        case Simple():
            return Simple(body.words + words, body.assignments, body.redirects + redirects, body.source)
        case ShellPipeline():
            return ShellPipeline((*body.stages[:-1], attach(body.stages[-1], redirects, words)))
        case ShellScript():
            last = body.steps[-1]
            return ShellScript((*body.steps[:-1], Step(attach(last.node, redirects, words), last.operator)))
        case _ if words:
            raise Unreadable("words after a redirection")
        case _:
            return Redirected(body, redirects)
