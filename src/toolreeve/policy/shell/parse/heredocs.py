"""Removal of heredocs that are only text, before parsing.

A command with any other heredoc is not known. Heredocs make up most of long commands, and parsers read them worst. One
is removed only if it is certain that no quote is open before its delimiter, that its line ends after it, where its text
ends, and that bash substitutes no more than variables.
"""

import re

from toolreeve.policy.shell.interpret.environment import may_be_secret
from toolreeve.policy.shell.parse.lexemes import ALONE, FILLED, PIECE, QUOTED, TEXT
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import Expansion, Part, RawWord, Template

_VARIABLES = Template((Part(Expansion.PARAMETER, ""),), "")
HEREDOCS: dict[str, RawWord] = {TEXT: "", FILLED: _VARIABLES}
"""The placeholders of removed heredocs, and the words they stand for."""
_KEYWORD = r"(?<![^\s;|&])(?:\[\[?|\]\]?|[{}!])(?=[ \t\n;])"
_CLOSED = rf"(?:(?!<<)(?:[ \t;|&<>]|{PIECE}|{ALONE}|{_KEYWORD}))"
_HEREDOC = re.compile(
    rf"((?:{_CLOSED}|\n)*+)(?<![0-9}}])<<(?:(['\"])(\w++)\2|([A-Za-z_]\w*+))(?=[ \t\n;|&<>])({_CLOSED}*+)(?=\n)"
)
_ESCAPED = re.compile(r"\\[\\$`]")
_NAMED = re.compile(r"\$(\w+)")
_ANOTHER = re.compile(r"(?<!<)<<(?!<)")
_CASE = re.compile(r"\bcase\b")
"""Its patterns end in a parenthesis that nothing opened."""


def remove_heredocs(command: str) -> str:
    """The command without the text of its leading heredocs, up to the first that is more than text."""
    kept: list[str] = []
    at = 0
    while (found := _HEREDOC.match(command, at)) is not None:
        before, _, quoted, bare, after = found.groups()
        start = found.end()
        mark = f"\n{quoted or bare}"
        ends = command.find(f"{mark}\n", start)
        if ends < 0 and command.endswith(mark, start):
            ends = len(command) - len(mark)
        if ends < 0 or "\n" in after:
            break
        placeholder = _placeholder(command[start : ends + 1], fixed=bool(quoted))
        if placeholder is None or (_CASE.search(before + after) and "(" in before + after):
            break
        kept += (before, placeholder, after)
        at = ends + len(mark)
    return "".join(kept) + command[at:]


def _placeholder(body: str, *, fixed: bool) -> str | None:
    """The placeholder for a heredoc of that text, or None if bash does more with it than substitute variables."""
    if fixed:
        return TEXT
    text = _ESCAPED.sub("", body)
    # Bash joins a line that ends in a backslash with the next one, also with one that looks like the mark.
    if "`" in text or "$(" in text or "${" in text or "$[" in text or "\\\n" in body:
        return None
    names = _NAMED.findall(text)
    if any(map(may_be_secret, names)):
        return None
    return FILLED if "$" in text else TEXT


def mask_heredocs(text: str) -> str:
    """The text for the grammar, with harmless redirections for the removed heredocs; there must be no others."""
    if "<<" in text and _ANOTHER.search(QUOTED.sub("_", text)):
        raise Unreadable("a heredoc that is more than text, or in an unusual position")
    return text.replace(TEXT, "</dev/stdin").replace(FILLED, "</dev/stdin")
