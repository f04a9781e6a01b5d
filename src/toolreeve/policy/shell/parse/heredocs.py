"""Removal of heredocs that are only text, before parsing.

Heredocs make up most of long commands, and parsers read them worst. One is removed only if it is certain that no quote
is open before its delimiter, that its line ends after it, and where its text ends. A command is not known if bash
substitutes more than variables in one. `"$(cat <<'EOF' …)"` becomes its text in quotes, which means the same.
"""

import re

from toolreeve.policy.shell.interpret.environment import may_be_secret
from toolreeve.policy.shell.parse.lexemes import ALONE, FILLED, PIECE, QUOTED, RUNNING, TEXT
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import Expansion, Opaque, Part, RawWord, ShellScript, Step, Template

_VARIABLES = Template((Part(Expansion.PARAMETER, ""),), "")
_RUNS = ShellScript((Step(Opaque("a heredoc in which bash runs commands", "a heredoc"), ";"),))
_COMMANDS = Template((Part(Expansion.SUBSTITUTION, "", quoted=True, script=_RUNS),), "")
HEREDOCS: dict[str, RawWord] = {TEXT: "", FILLED: _VARIABLES, RUNNING: _COMMANDS}
"""The placeholders of removed heredocs, and the words they stand for."""
_KEYWORD = r"(?<![^\s;|&])(?:\[\[?|\]\]?|[{}!])(?=[ \t\n;])"
_CLOSED = rf"(?:(?!<<)(?:[ \t;|&<>]|{PIECE}|{ALONE}|{_KEYWORD}))"
_DELIMITER = r"<<[ \t]*+(?:(['\"])(\w++)\2|([A-Za-z_]\w*+))"
_HEREDOC = re.compile(rf"((?:{_CLOSED}|\n)*+)(?<![0-9}}]){_DELIMITER}(?=[ \t\n;|&<>])({_CLOSED}*+)(?=\n)")
_PRINTED = re.compile(rf"((?:{_CLOSED}|\n)*+)\"\$\([ \t]*+cat[ \t]*+{_DELIMITER}[ \t]*+(?=\n)")
_PRINTED_END = re.compile(r"[ \t\n]*+\)\"")
_ESCAPED = re.compile(r"\\[\\$`]")
_NAMED = re.compile(r"\$(\w+)")
_ANOTHER = re.compile(r"(?<!<)<<(?!<)")
_CASE = re.compile(r"\bcase\b")
"""Its patterns end in a parenthesis that nothing opened."""


def remove_heredocs(command: str) -> str:
    """The command without the text of its leading heredocs, up to the first that is more than text."""
    kept: list[str] = []
    at = 0
    while True:
        if (printed := _as_text(command, at)) is not None:
            at, text = printed
            kept.append(text)
            continue
        if (found := _HEREDOC.match(command, at)) is None:
            break
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


def _as_text(command: str, at: int) -> tuple[int, str] | None:
    """Where `"$(cat <<'EOF' …)"` ends, if it comes next, and the command up to there with its text in quotes."""
    found = _PRINTED.match(command, at)
    if found is None:
        return None
    before, _, quoted, bare = found.groups()
    start = found.end() + 1
    ends = command.find(f"\n{quoted or bare}\n", start - 1)
    closed = _PRINTED_END.match(command, ends + len(quoted or bare) + 1) if ends >= 0 else None
    text = command[start:ends].rstrip("\n")
    if closed is None or (bare and re.search(r"[$`\\]", text)) or (_CASE.search(before) and "(" in before):
        return None
    return closed.end(), before + "'" + text.replace("'", "'\\''") + "'"


def _placeholder(body: str, *, fixed: bool) -> str | None:
    """The placeholder for a heredoc of that text, or None if it is not certain where it ends."""
    if fixed:
        return TEXT
    text = _ESCAPED.sub("", body)
    # Bash joins a line that ends in a backslash with the next one, also with one that looks like the mark.
    if "\\\n" in body:
        return None
    if "`" in text or "$(" in text or "${" in text or "$[" in text or any(map(may_be_secret, _NAMED.findall(text))):
        return RUNNING
    return FILLED if "$" in text else TEXT


def mask_heredocs(text: str) -> str:
    """The text for the grammar, with harmless redirections for the removed heredocs; there must be no others."""
    if "<<" in text and _ANOTHER.search(QUOTED.sub("_", text)):
        raise Unreadable("a heredoc that is more than text, or in an unusual position")
    if RUNNING in text:
        raise Unreadable("a heredoc in which bash runs commands")
    return text.replace(TEXT, "</dev/stdin").replace(FILLED, "</dev/stdin")
