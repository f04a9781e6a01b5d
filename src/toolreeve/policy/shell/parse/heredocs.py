"""Which heredocs are only text? They are taken out before a command is read; with any other it is not known.

They are most of what long commands are made of, and what parsers read worst. One is taken out only where it is certain
that no quote is open before its mark, that its line ends after it, where its text ends, and that bash puts in no more
than variables.
"""

import re

from toolreeve.policy.shell.interpret.environment import may_be_secret
from toolreeve.policy.shell.parse.lexemes import ALONE, FILLED, PIECE, QUOTED, TEXT
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import Expansion, Part, RawWord, Template

_VARIABLES = Template((Part(Expansion.PARAMETER, ""),), "")
HEREDOCS: dict[str, RawWord] = {TEXT: "", FILLED: _VARIABLES}
"""What stands for a heredoc that was taken out, and what that heredoc is."""
_KEYWORD = r"(?<![^\s;|&])(?:\[\[?|\]\]?|[{}!])(?=[ \t\n;])"
_CLOSED = rf"(?:(?!<<)(?:[ \t;|&<>]|{PIECE}|{ALONE}|{_KEYWORD}))"
_HEREDOC = re.compile(
    rf"((?:{_CLOSED}|\n)*+)(?<![0-9}}])<<(?:(['\"])(\w++)\2|([A-Za-z_]\w*+))(?=[ \t\n;|&<>])({_CLOSED}*+)(?=\n)"
)
_ESCAPED = re.compile(r"\\[\\$`]")
_NAMED = re.compile(r"\$(\w+)")
_ANOTHER = re.compile(r"(?<!<)<<(?!<)")
_CASE = re.compile(r"\bcase\b")
"""Its patterns end in a bracket that closes nothing."""


def remove_heredocs(command: str) -> str:
    """The command without the text of the heredocs at its beginning, up to the first that is more than text."""
    kept: list[str] = []
    at = 0
    while (found := _HEREDOC.match(command, at)) is not None:
        before, _, quoted, bare, after = found.groups()
        start, mark = found.end(), f"\n{quoted or bare}"
        ends = command.find(f"{mark}\n", start)
        if ends < 0 and command.endswith(mark, start):
            ends = len(command) - len(mark)
        sign = _sign(command[start : ends + 1], fixed=bool(quoted)) if ends >= 0 and "\n" not in after else None
        if sign is None or (_CASE.search(before + after) and "(" in before + after):
            break
        kept += (before, sign, after)
        at = ends + len(mark)
    return "".join(kept) + command[at:]


def _sign(body: str, *, fixed: bool) -> str | None:
    """What stands for a heredoc of that text, or None where bash does more with it than to put in variables."""
    if fixed:
        return TEXT
    text = _ESCAPED.sub("", body)
    # Bash joins a line that ends in a backslash with the next one, also with one that looks like the mark.
    if "`" in text or "$(" in text or "${" in text or "$[" in text or "\\\n" in body:
        return None
    names = _NAMED.findall(text)
    return None if any(map(may_be_secret, names)) else FILLED if "$" in text else TEXT


def mask_heredocs(text: str) -> str:
    """What the grammar is shown in the place of heredocs that were taken out: it must see no other."""
    if "<<" in text and _ANOTHER.search(QUOTED.sub("_", text)):
        raise Unreadable("a heredoc that is more than text, or not plainly placed")
    return text.replace(TEXT, "</dev/stdin").replace(FILLED, "</dev/stdin")
