"""Handler of awk: finds what a program could write, run or read."""

import re

from toolreeve.policy.shell.interpret.expansion import Word
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.parse.size import LONGEST_PROGRAM
from toolreeve.policy.shell.programs.arguments import NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import conclude

_PIECE = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\n|\#[^\n]*)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+))
      | (?P<name>[A-Za-z_]\w*)
      | (?P<operator>\|\||&&|\|&|\+\+|--|\*\*=?|[-+*%^!=<>]=|>>|!~|[][{}()$;,:?~!<>|+*%^=\n-])
      | (?P<slash>/)
      | (?P<at>@)""",
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n]|\\.|\[:\w+:\])*\])*/")
_REFUSED = frozenset(("system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB", "extension"))
_UNCLEAR = frozenset(("length", "++", "--", "in", "$"))
"""After these, a slash divides for some awks and begins a pattern for others."""
_KEYWORDS = frozenset("print printf return case else do exit if while for switch".split())
_CHOOSES = re.compile(r"(?:/[^/\\]*/|NR *[=<>!]=? *\d+)? *(?:\{ *print(?: *\$(?:\d+|NF))? *;? *\})?")
"""Programs that print lines, or words of them, as they are."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def handle(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    operands = arguments.operands
    if not operands or not isinstance(operands[0], str):
        raise NotKnown("an awk program that is not shown")
    if len(operands[0]) > LONGEST_PROGRAM:
        raise NotKnown(f"an awk program of more than {LONGEST_PROGRAM:,} characters")
    check(operands[0])
    for operand in operands[1:]:
        if isinstance(operand, str) and _ASSIGNMENT.match(operand):
            continue
        if isinstance(operand, str) and operand.startswith("/inet"):
            raise NotKnown(f"`{operand}`, which gawk takes for a connection")
        apply_role("read", operand, site)
    found = conclude(spec, arguments, site)
    return found if _CHOOSES.fullmatch(operands[0].strip()) and not arguments.flags else None


def check(text: str) -> None:
    """Raises `NotKnown` unless the program cannot write a file, run a command or read one it was not given."""
    at = 0
    previous = ""
    printing = False
    depth = 0
    parentheses: list[bool] = []
    while at < len(text):
        kind, piece = _next(text, at, previous)
        at += len(piece)
        if kind == "blank":
            continue
        _refuse(kind, piece)
        if kind == "name" and piece in ("print", "printf"):
            printing = True
            depth = 0
        elif printing:
            if piece == ">" and depth <= 0:
                raise NotKnown("an awk program that writes")
            depth += (piece in ("(", "[")) - (piece in (")", "]"))
            # A newline may continue the list of what is printed, so only these end it.
            printing = piece not in (";", "}")
        previous = _before_slash(kind, piece, previous, parentheses)


def _refuse(kind: str, piece: str) -> None:
    if (kind == "name" and piece in _REFUSED) or piece in ("|", "|&", ">>") or kind == "at":
        raise NotKnown(f"`{piece}` in an awk program")


def _before_slash(kind: str, piece: str, previous: str, parentheses: list[bool]) -> str:
    """Decides what a following slash means: after "operand" it divides, else it begins a pattern."""
    if piece == "(":
        parentheses.append(previous in ("if", "while", "for", "switch"))
    elif piece == ")":
        return "" if parentheses and parentheses.pop() else "operand"
    elif kind in ("string", "number", "regex") or piece == "]":
        return "operand"
    elif kind == "name":
        return piece if piece in _KEYWORDS or piece in _UNCLEAR else "operand"
    return piece


def _next(text: str, at: int, previous: str) -> tuple[str, str]:
    found = _PIECE.match(text, at)
    if found is None:
        raise NotKnown(f"`{text[at]}` in an awk program")
    kind = str(found.lastgroup)
    if kind != "slash":
        return kind, found.group()
    if previous in _UNCLEAR:
        raise NotKnown(f"a slash after `{previous}`, which awks read differently")
    if previous == "operand":
        return "operator", "/"
    regex = _REGEX.match(text, at)
    # Inside brackets a slash ends the pattern for some awks and not for others: only agreement counts.
    if regex is None or re.search(r"\[[^\]]*/", regex.group()[1:-1].replace("\\/", "")):
        raise NotKnown("an awk pattern whose end is not clear")
    return "regex", regex.group()
