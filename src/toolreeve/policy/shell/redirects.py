"""Where do a command's input and output go? Redirections, heredocs, and to which command bash gives them."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from toolreeve.policy.shell.heredocs import filled
from toolreeve.policy.shell.scan import Unreadable
from toolreeve.policy.shell.syntax import Node, Pipeline, RawWord, Redirect, Redirected, Script, Simple, Step
from toolreeve.policy.shell.tree import LINE, WORDS, Reader

if TYPE_CHECKING:
    from tree_sitter import Node as Branching

REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_BEFORE_DESCRIPTOR = frozenset(("", " ", "\t", "\n", ";", "|", "&", "(", ")", "}", ">", "<"))
_AFTER_MARK = frozenset(" \t\n;|&<>()")
_TAKEN_FOR_WORD = re.compile(r"(?:\d|\{\w+\}|\{\w+\[[^\s]*\]\})\Z")
_LONGEST_DESCRIPTOR = 64
_OUTPUTS = frozenset((">", ">>", "<", "&>", "&>>", ">&", "<&", ">|"))


def redirected(reader: Reader, node: "Branching") -> Node:
    body: Node | None = None
    redirects: list[Redirect] = []
    extra: list[RawWord] = []
    following: list[Step] = []
    for child in reader.line(node):
        if child.type in REDIRECTS:
            following.extend(add_redirect(reader, child, redirects, extra))
        else:
            body = reader.statement(child)
    joined = attach(body or Simple(()), tuple(redirects), tuple(extra))
    return Script((Step(joined, ";"), *following)) if following else joined


def add_redirect(reader: Reader, node: "Branching", redirects: list[Redirect], words: list[RawWord]) -> list[Step]:
    if _TAKEN_FOR_WORD.search(reader.text, max(0, node.start_byte - _LONGEST_DESCRIPTOR), node.start_byte):
        raise Unreadable("a redirection whose descriptor looks like a word")
    if node.type == "heredoc_redirect":
        return _heredoc(reader, node, redirects, words)
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
        return []
    if operator not in _OUTPUTS or len(children) < 2:
        raise Unreadable(f"the redirection `{operator}`")
    target, *rest = reader.covered(children[1:], children[0].end_byte, node.end_byte, LINE)
    if any(left.end_byte == right.start_byte for left, right in pairwise((target, *rest))):
        raise Unreadable("words that the parser tore apart")
    redirects.append(Redirect(operator, descriptor, reader.word(target)))
    words.extend(reader.word(child) for child in rest)
    return []


def _heredoc(reader: Reader, node: "Branching", redirects: list[Redirect], words: list[RawWord]) -> list[Step]:
    following: list[Step] = []
    quoted = False
    _check_end(reader, node)
    ended = node.start_byte
    for child in reader.children(node):
        kind = child.type
        if kind in WORDS or kind in REDIRECTS or kind in reader.forms:
            reader.check_blank(ended, child.start_byte, LINE)
        ended = child.end_byte
        if kind == "heredoc_start":
            quoted = not re.fullmatch(r"\w+", reader.source(child))
        elif kind == "heredoc_body":
            body = reader.text[child.start_byte : child.end_byte]
            redirects.append(Redirect("<<", "", "" if quoted else filled(body)))
        elif kind in REDIRECTS:
            following.extend(add_redirect(reader, child, redirects, words))
        elif kind in WORDS:
            words.append(reader.word(child))
        elif kind in reader.forms:
            following.append(Step(reader.statement(child), ";"))
        elif kind not in ("<<", "<<-", "heredoc_end", "&&", "||", "|", "|&", "file_descriptor", ";", "\n"):
            raise Unreadable("a heredoc that is not plain")
    return following


def _check_end(reader: Reader, node: "Branching") -> None:
    """Where the body ends is found again here: what follows it is commands."""
    parts = {child.type: child for child in node.children}
    start, body, end = (parts.get(f"heredoc_{part}") for part in ("start", "body", "end"))
    if start is None or end is None or sum(child.type == "heredoc_redirect" for child in node.parent.children) > 1:  # type: ignore[union-attr]
        raise Unreadable("a heredoc that is not plain")
    mark = re.fullmatch(r"(['\"]?)(\w+)\1|\\(\w+)", reader.source(start))
    name = mark and (mark.group(2) or mark.group(3))
    lines = reader.text[body.start_byte : end.start_byte].split("\n") if body is not None else []
    line = reader.text[reader.text.rfind("\n", 0, end.start_byte) + 1 :].partition("\n")[0]
    indent = "\t" if "<<-" in parts else ""
    if reader.text[start.end_byte] not in _AFTER_MARK:
        raise Unreadable("a heredoc whose end the parser took for another word")
    if name is None or line.lstrip(indent) != name or any(text.lstrip("\t") == name for text in lines):
        raise Unreadable("a heredoc whose end is not clear")


def attach(body: Node, redirects: tuple[Redirect, ...], words: tuple[RawWord, ...]) -> Node:
    """Give redirections, and words written after them, to the command that bash gives them to: the last one."""
    match body:
        case Simple():
            return Simple(body.words + words, body.assignments, body.redirects + redirects, body.source)
        case Pipeline():
            return Pipeline((*body.stages[:-1], attach(body.stages[-1], redirects, words)))
        case Script():
            last = body.steps[-1]
            return Script((*body.steps[:-1], Step(attach(last.node, redirects, words), last.operator)))
        case _ if words:
            raise Unreadable("words after a redirection")
        case _:
            return Redirected(body, redirects)
