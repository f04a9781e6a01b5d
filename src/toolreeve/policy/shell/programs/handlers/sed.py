"""Handler of sed: finds script commands that write, read or run."""

import re

from toolreeve.core.effects import EffectKind
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.parse.size import LONGEST_PROGRAM
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import conclude

_ADDRESS = re.compile(r"\s*(?:\d+(?:~\d+)?|\$|[+~]\d+)\s*")
_LABEL = re.compile(r"[ \t]*[^\s;}]*")
_REST_OF_LINE = re.compile(r"[^\n]*(?:\\\n[^\n]*)*")
_FLAGS = re.compile(r"[gpiImM0-9]*")
_ALONE = frozenset("pPdDhHgGxnN=FlzqQ")
_CHOOSES_LINES = re.compile(r"(?:(?:\d+|\$|/[^/\\]*/)(?:,(?:\d+|\$|/[^/\\]*/))?)?!?[pdq]")
_LONGEST_ENDING = 64
_NUMBERED = frozenset("qQlL")


def handle(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    operands = list(arguments.operands)
    scripts = [value for flag, value in arguments.flags if flag in ("-e", "--expression")]
    if arguments.has("-f", "--file"):
        raise NotKnown("a sed script in a file")
    if not scripts:
        if not operands:
            raise NotKnown("sed without a script")
        scripts = [operands.pop(0)]
    texts = [script for script in scripts if isinstance(script, str)]
    if len(texts) != len(scripts):
        raise NotKnown("a sed script decided only when it runs")
    if sum(map(len, texts)) > LONGEST_PROGRAM:
        raise NotKnown(f"a sed script of more than {LONGEST_PROGRAM:,} characters")
    _Script("\n".join(texts), site).read()
    in_place = arguments.has("-i", "--in-place")
    for operand in operands:
        apply_role("read", operand, site)
        if in_place:
            apply_role("write", operand, site)
            _keep_old(operand, arguments, site)
    # If a flag gave the script, the first operand is a file already.
    found = conclude(spec, arguments._replace(operands=["", *operands]), site)
    plain = all(map(_CHOOSES_LINES.fullmatch, texts)) and not arguments.has("--debug")
    return found if plain else None


def _keep_old(operand: Word, arguments: Arguments, site: CommandSite) -> None:
    """`-i.bak` also keeps the old file: with that suffix, or with its name in place of a `*`."""
    for flag, ending in arguments.flags:
        if flag in ("-i", "--in-place") and ending:
            if not isinstance(ending, str) or "/" in ending or len(ending) > _LONGEST_ENDING:
                raise NotKnown("sed keeps its backup in another directory, or under a name that cannot be read")
            if not isinstance(operand, Dynamic):
                folder, slash, name = shown(operand).rpartition("/")
                kept = folder + slash + (ending.replace("*", name) if "*" in ending else name + ending)
                apply_role("write", kept if isinstance(operand, str) else Glob(kept), site)


class _Script:
    __slots__ = ("_at", "_site", "_text")

    def __init__(self, text: str, site: CommandSite) -> None:
        self._text = text
        self._site = site
        self._at = 0

    def read(self) -> None:
        while self._at < len(self._text):
            if self._text[self._at] in " \t\n;{}":
                self._at += 1
            elif self._text[self._at] == "#":
                self._skip(_REST_OF_LINE)
            else:
                self._address()
                self._command()

    def _skip(self, form: re.Pattern[str]) -> str:
        found = form.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found.group() if found else ""

    def _blanks(self) -> None:
        while self._peek() in (" ", "\t"):
            self._at += 1

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _address(self) -> None:
        while True:
            if self._peek() == "/":
                self._delimited("/")
            elif self._peek() == "\\" and self._at + 1 < len(self._text):
                self._at += 1
                self._delimited(self._peek())
            elif not self._skip(_ADDRESS):
                return
            while self._peek() in ("I", "M"):
                self._at += 1
            self._blanks()
            if self._peek() != ",":
                break
            self._at += 1
            self._blanks()
        while self._peek() in ("!", " ", "\t"):
            self._at += 1

    def _delimited(self, mark: str) -> None:
        """Move from the opening delimiter past the closing one."""
        if mark in ("", "\n", "\\"):
            raise NotKnown("a sed script that cannot be read")
        self._at += 1
        bracket = False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\\":
                self._at += 1
            elif char == "\n":
                break
            elif char == mark:
                # GNU sed ends at the mark even inside a bracket expression; others do not: only agreement counts.
                if bracket:
                    raise NotKnown("a sed pattern whose end is ambiguous")
                self._at += 1
                return
            elif char == "[" and not bracket:
                bracket = self._opens_bracket()
            elif char == "]":
                bracket = False
            self._at += 1
        raise NotKnown("a sed pattern that does not end")

    def _opens_bracket(self) -> bool:
        following = re.compile(r"\^?\]?").match(self._text, self._at + 1)
        closing = self._text.find("]", following.end() if following else self._at + 1)
        if closing < 0:
            return False
        if following and following.group():
            self._at = following.end() - 1
        return True

    def _command(self) -> None:
        command = self._peek()
        self._at += 1
        if command in ("", "\n", ";", "}"):
            return
        if command == "{":
            return
        if command == "s":
            self._substitute()
        elif command == "y":
            mark = self._peek()
            self._delimited(mark)
            self._at -= 1
            self._delimited(mark)
        elif command in _ALONE:
            if command in _NUMBERED:
                self._skip(re.compile(r"[ \t]*\d*"))
        elif command in "aic":
            self._skip(_REST_OF_LINE)
        elif command in ":btT":
            self._skip(_LABEL)
        elif command in "wW":
            self._touch(EffectKind.WRITE)
        elif command in "rR":
            self._touch(EffectKind.READ)
        else:
            raise NotKnown(f"the sed command `{command}`")

    def _touch(self, kind: EffectKind) -> None:
        name = self._skip(re.compile(r"[^\n]*")).strip(" \t")
        if name.endswith("}"):
            raise NotKnown("a sed file name that cannot be read")
        self._site.touch(kind, name)

    def _substitute(self) -> None:
        mark = self._peek()
        self._delimited(mark)
        self._at -= 1
        self._replacement(mark)
        self._skip(_FLAGS)
        if self._peek() == "w":
            self._at += 1
            self._touch(EffectKind.WRITE)
        elif self._peek() not in ("", " ", "\t", "\n", ";", "}", "#"):
            raise NotKnown(f"the flag `{self._peek()}` of the sed command `s`")

    def _replacement(self, mark: str) -> None:
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 2 if char == "\\" else 1
            if char == mark:
                return
        raise NotKnown("a sed replacement that does not end")
