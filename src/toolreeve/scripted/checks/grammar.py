"""Bash grammar of the checks: parses a script, or refuses it.

Fails closed: a script that the grammar does not understand is refused. Two valid forms that it does not know are
spelled in another way first, with the same meaning.
"""

import re

from toolreeve.core.bash_grammar import masked
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.words import Node, text_of, walk

_MAX_REPAIRS = 50
_VARIABLE = re.compile(rb"\s*(\$)(\w+)")


def parse_bash(script: str) -> Node:
    """The root of its tree. Raises TemplateProblem."""
    import tree_sitter
    import tree_sitter_bash

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    source = masked(script.encode())
    for _ in range(_MAX_REPAIRS):
        root: Node = parser.parse(source).root_node
        if not root.has_error:
            return root
        error = next(node for node in walk(root) if node.type == "ERROR" or node.is_missing)
        repaired = _respelled(source, error)
        if repaired is None:
            break
        source = repaired
    text = f"is not understood as bash: {text_of(error)[:40]!r}"
    raise TemplateProblem(text, line=error.start_point.row + 1, fix="write it more simply")


def _respelled(source: bytes, error: Node) -> bytes | None:
    """`{ …; } <<< word` as `{ …; } < word`, which feeds it too, and `${y:$x}` as `${y:${x}}`."""
    start, end = error.start_byte, error.end_byte
    if error.type == "ERROR" and source[start:end] == b"<<" and source[end : end + 1] == b"<":
        before = source[:start].rstrip(b"0123456789")
        return before + b"  " + source[len(before) : start] + source[end:]
    inside = error.parent is not None and error.parent.type == "expansion" and b":" in error.parent.text
    if error.is_missing and error.type == "}" and inside and (found := _VARIABLE.match(source, start)):
        return source[: found.start(1)] + b"${" + found[2] + b"}" + source[found.end() :]
    return None
