"""Does an awk program only read and print? It is read token by token for what could write, run or read elsewhere."""

import re

from toolreeve.policy.shell.arguments import NotKnown, read
from toolreeve.policy.shell.judging import conclude
from toolreeve.policy.shell.roles import apply
from toolreeve.policy.shell.site import Site
from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Word, may_be_flag, shown

_TOKEN = re.compile(
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
_REFUSED = frozenset(("system", "getline", "ARGV", "ARGC", "ENVIRON", "PROCINFO", "SYMTAB", "FUNCTAB", "fflush", "nextfile_"))
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


def judge(spec: Program, words: list[Word], site: Site) -> tuple[str, ...] | None:
    arguments = read(spec, words)
    if arguments.has("--version", "--help", "-V", "-h") and not arguments.operands:
        return None
    operands = arguments.operands
    if not operands or not isinstance(operands[0], str):
        raise NotKnown("an awk program that is not shown")
    check(operands[0])
    for operand in operands[1:]:
        if isinstance(operand, str) and _ASSIGNMENT.match(operand):
            continue
        if may_be_flag(operand) and not isinstance(operand, str):
            # Flags end at the program text, so even a name that begins with a dash is a file here.
            pass
        apply("read", operand, site)
    return conclude(spec, arguments, site)


def check(text: str) -> None:
    """Raises `NotKnown` unless the program cannot write a file, run a command or read one it was not given."""
    at, previous, printing, depth = 0, "", False, 0
    while at < len(text):
        kind, token = _token(text, at, previous)
        at += len(token)
        if kind == "blank":
            continue
        if kind == "name" and token in _REFUSED:
            raise NotKnown(f"`{token}` in an awk program")
        if token in ("|", "|&", ">>") or kind == "at":
            raise NotKnown(f"`{token}` in an awk program")
        if kind == "name" and token in ("print", "printf"):
            printing, depth = True, 0
        elif printing:
            if token == ">" and depth <= 0:
                raise NotKnown("an awk program that writes")
            depth += (token in "([") - (token in ")]") if kind == "operator" else 0
            printing = token not in (";", "}", "\n", "{")
        previous = "" if token == "\n" else "operand" if kind in ("string", "number", "regex") else token
        if kind == "name" and token not in ("print", "printf", "return", "in", "case"):
            previous = "operand"


def _token(text: str, at: int, previous: str) -> tuple[str, str]:
    found = _TOKEN.match(text, at)
    if found is None:
        raise NotKnown(f"`{shown(text[at])}` in an awk program")
    kind = str(found.lastgroup)
    if kind != "slash":
        return kind, found.group()
    if previous in ("operand", ")", "]", "$", "++", "--"):
        return "operator", "/"
    regex = _REGEX.match(text, at)
    if regex is None:
        raise NotKnown("an awk pattern that does not end")
    return "regex", regex.group()
