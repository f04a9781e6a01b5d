"""Which heredocs can be taken out before a command is read? Those whose text nothing is found in but variables.

They are most of what long commands are made of. One is taken out only where it is certain that no quote is open before
its mark, that its line ends after it, and where its text ends.
"""

import re

from toolreeve.policy.shell.pieces import ALONE, FILLED, PIECE, TEXT
from toolreeve.policy.shell.scan import Unreadable
from toolreeve.policy.shell.syntax import Hole, Part, RawWord, Template

_VARIABLES = Template((Part(Hole.PARAMETER, ""),), "")
HEREDOCS: dict[str, RawWord] = {TEXT: "", FILLED: _VARIABLES}
"""What stands for a heredoc that was taken out, and what that heredoc is."""
_CLOSED = rf"(?:(?!<<)(?:[ \t;|&<>]|{PIECE}|{ALONE}))"
_HEREDOC = re.compile(
    rf"((?:{_CLOSED}|\n)*+)(?<![\w}}])<<(?:(['\"])(\w++)\2|([A-Za-z_]\w*+))(?=[ \t\n;|&<>])({_CLOSED}*+)(?=\n)"
)
_ESCAPED = re.compile(r"\\[\\$`]")


def filled(body: str) -> RawWord:
    """The text of a heredoc in which bash puts in what variables hold; commands in it are not read."""
    body = _ESCAPED.sub("", body)
    if "`" in body or "$(" in body or "${" in body or "$[" in body:
        raise Unreadable("an expansion in a heredoc")
    return _VARIABLES if "$" in body else ""


def take_out(command: str) -> str:
    """The command without the heredocs at its beginning, up to the first that must be looked at more closely."""
    kept: list[str] = []
    at = 0
    while (found := _HEREDOC.match(command, at)) is not None:
        before, _, quoted, bare, after = found.groups()
        start, mark = found.end(), f"\n{quoted or bare}"
        ends = command.find(f"{mark}\n", start)
        if ends < 0 and command.endswith(mark, start):
            ends = len(command) - len(mark)
        # Bash joins a line that ends in a backslash with the next one, also with one that looks like the mark.
        if ends < 0 or "\n" in after or (bare and "\\\n" in command[start : ends + 1]):
            break
        try:
            text = "" if quoted else filled(command[start:ends])
        except Unreadable:
            break
        kept += (before, FILLED if text else TEXT, after)
        at = ends + len(mark)
    return "".join(kept) + command[at:]
