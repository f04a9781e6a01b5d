"""Simple commands: words, assignments and redirections."""

import re
from typing import TYPE_CHECKING

from toolreeve.policy.shell.parse.redirects import REDIRECTS, add_redirect
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import Assignment, Declaration, Node, Opaque, RawWord, Redirect, Simple
from toolreeve.policy.shell.parse.tree import LINE, WORDS, TreeReader

if TYPE_CHECKING:
    from tree_sitter import Node as TreeNode

RESERVED = frozenset("if then elif else fi for while until do done case esac in select function { } ]] coproc".split())
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def command(reader: TreeReader, node: "TreeNode") -> Node:
    words: list[RawWord] = []
    assignments: list[Assignment] = []
    redirects: list[Redirect] = []
    ended = -1
    for child in reader.line(node):
        kind = child.type
        # Bash ends a word only at a blank or an operator; the parser sometimes sees two words in one.
        if child.start_byte == ended and kind not in REDIRECTS:
            return Opaque("words that the parser split", reader.source(node))
        ended = child.end_byte
        if kind in WORDS:
            words.append(reader.word(child))
        elif kind == "command_name":
            words.append(reader.word(child.children[0]))
        elif kind == "variable_assignment":
            assignments.append(_assignment(reader, child))
        elif kind in REDIRECTS:
            add_redirect(reader, child, redirects, words)
        elif kind in ("[", "]", "==", "=~", "$"):
            words.append(reader.source(child))
        else:
            return Opaque(f"`{kind}` inside a command", reader.source(node))
    if words and words[0] in RESERVED:
        return Opaque("a reserved word where a command is expected", reader.source(node))
    return Simple(tuple(words), tuple(assignments), tuple(redirects), reader.source(node))


def _assignment(reader: TreeReader, node: "TreeNode") -> Assignment:
    name, *rest = reader.line(node)
    plain = name.type == "variable_name" and _NAME.fullmatch(reader.source(name)) is not None
    if not plain or not rest or rest[0].type != "=" or name.start_byte != node.start_byte:
        raise Unreadable("an assignment that is not plain")
    if len(rest) == 1:
        return Assignment(reader.source(name), ("",))
    if rest[1].type == "array":
        inner = [child for child in reader.children(rest[1]) if child.type not in ("(", ")", "comment")]
        if any(reader.text[child.start_byte] == "[" for child in inner):
            raise Unreadable("an array with subscripts, which are evaluated")
        return Assignment(reader.source(name), tuple(reader.word(child) for child in inner), array=True)
    return Assignment(reader.source(name), (reader.word(rest[1]),))


def bare_assignments(reader: TreeReader, node: "TreeNode") -> Node:
    found = reader.line(node) if node.type == "variable_assignments" else [node]
    return Simple((), tuple(_assignment(reader, child) for child in found), (), reader.source(node))


def declaration(reader: TreeReader, node: "TreeNode") -> Node:
    flags: list[str] = []
    assignments: list[Assignment] = []
    if len(node.children) > 1 and node.children[1].start_byte == node.children[0].end_byte:
        raise Unreadable("a word that begins like a keyword")
    for child in reader.covered(node.children[1:], node.children[0].end_byte, node.end_byte, LINE):
        if child.type == "variable_assignment":
            assignments.append(_assignment(reader, child))
        else:
            word = reader.word(child) if child.type in WORDS else reader.source(child)
            if not isinstance(word, str):
                raise Unreadable("a declaration that is not plain")
            flags.append(word)
    return Declaration(reader.source(node.children[0]), tuple(flags), tuple(assignments), reader.source(node))


def unset(reader: TreeReader, node: "TreeNode") -> Node:
    keyword, *found = reader.line(node)
    if keyword.type != "unset":
        raise Unreadable(f"`{keyword.type}` as a keyword")
    names = (reader.source(child) if child.type == "variable_name" else reader.word(child) for child in found)
    return Simple(("unset", *names), (), (), reader.source(node))
