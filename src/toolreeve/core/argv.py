"""Command-line splitting: programs and arguments, as a POSIX shell splits them.

Quotes and escapes mean what they mean in a shell; `|` and `&&` separate commands. Anything a shell would expand, or do
besides starting programs, is refused by name: nothing is guessed or passed on literally.
"""

import re
from typing import NoReturn

from toolreeve.core.errors import ErrorCode, ToolError

Argv = tuple[str, ...]
Pipeline = tuple[Argv, ...]

MAX_CHARACTERS = 100_000
_GLOB = "file names are not expanded; quote it to pass it literally, or name the files (search_files finds them)"
_REFUSED = {
    "\n": "a line break would start another command; join commands with &&",
    ";": "it would start another command; use && or separate calls",
    "&": "it would run a command in the background; only && is supported",
    "<": "redirections need a shell; name the file as an argument",
    ">": "redirections need a shell; stdout and stderr are returned, write_file writes files",
    "(": "subshells need a shell",
    ")": "subshells need a shell",
    "`": "command substitution needs a shell; run the inner command in a separate call",
    "#": "it would start a comment; quote it",
    "~": "the home directory is not expanded; write the path in full",
    "{": "braces are not expanded; write the words out, or quote them",
    "*": _GLOB,
    "?": _GLOB,
    "[": _GLOB,
}
_PLAIN = re.compile(r"[^ \t\n'\"\\|&;<>()`*?\[$#~{]+")
_EXPANDED = re.compile(r"\$(?=[A-Za-z_0-9({\['\"@*#?$!-])")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")


def split(command: str) -> tuple[Pipeline, ...]:
    """The pipelines of a `&&` list, each a sequence of programs with their arguments. Raises
    ToolError(CMD_NOT_ALLOWED)."""
    if len(command) > MAX_CHARACTERS:
        raise refusal(f"it is longer than {MAX_CHARACTERS} characters")
    if "\0" in command:
        raise refusal("it contains a NUL character, which no argument can")
    try:
        command.encode()
    except UnicodeEncodeError:
        raise refusal("it is not valid Unicode") from None
    return _Splitter(command.strip(" \t\n")).run()


def refusal(reason: str) -> ToolError:
    return ToolError(ErrorCode.CMD_NOT_ALLOWED, f"the command is refused: {reason}")


class _Splitter:
    """`word` is None between words; an empty pair of quotes makes it an empty word."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._word: str | None = None
        self._argv: list[str] = []
        self._pipeline: list[Argv] = []
        self._list: list[Pipeline] = []

    def run(self) -> tuple[Pipeline, ...]:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        self._end_pipeline()
        return tuple(self._list)

    def _step(self, char: str) -> None:
        match char:
            case " " | "\t":
                self._end_word()
                self._at += 1
            case "'" | '"' | "\\":
                self._quoted(char)
            case "|" | "&" if self._operator():
                pass
            case "$" if not _EXPANDED.match(self._text, self._at):
                self._take(char)
            case "#" if self._word is not None:
                self._take(char)
            case "~" if self._word is not None and self._text[self._at - 1] not in "=:":
                self._take(char)
            case "{" if self._text.startswith("{}", self._at):
                self._take("{}")
            case _ if plain := _PLAIN.match(self._text, self._at):
                self._take(plain.group())
            case _:
                self._refuse(char)

    def _take(self, text: str) -> None:
        self._word = (self._word or "") + text
        self._at += len(text)

    def _quoted(self, mark: str) -> None:
        match mark:
            case "'":
                self._single()
            case '"':
                self._double()
            case _:
                self._escaped()

    def _single(self) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise refusal("a ' is never closed")
        self._word = (self._word or "") + self._text[self._at + 1 : end]
        self._at = end + 1

    def _double(self) -> None:
        self._word = self._word or ""
        at = self._at + 1
        while at < len(self._text) and (char := self._text[at]) != '"':
            if char == "`" or (_EXPANDED.match(self._text, at) and self._text[at + 1] not in "'\""):
                self._at = at
                self._refuse(char)
            if char == "\\" and self._text[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n"):
                at += 1
                char = self._text[at].replace("\n", "")
            self._word += char
            at += 1
        if at >= len(self._text):
            raise refusal('a " is never closed')
        self._at = at + 1

    def _escaped(self) -> None:
        if self._at + 1 >= len(self._text):
            raise refusal("it ends in a backslash that escapes nothing")
        char = self._text[self._at + 1]
        self._at += 2
        if char != "\n":  # a line goes on after a backslash at its end
            self._word = (self._word or "") + char

    def _operator(self) -> bool:
        """Consume a supported operator, if there is one here."""
        two = self._text[self._at : self._at + 2]
        if two == "&&":
            self._end_pipeline()
            self._at += 2
        elif two[0] == "|" and two not in ("||", "|&"):
            self._end_command("|")
            self._at += 1
        else:
            return False
        return True

    def _end_word(self) -> None:
        if self._word is None:
            return
        if not self._argv and _ASSIGNMENT.match(self._word):
            raise refusal(f"{self._word!r} would set a variable; use `env {self._word} program`")
        self._argv.append(self._word)
        self._word = None

    def _end_command(self, before: str) -> None:
        self._end_word()
        if not self._argv:
            where = f"before {before!r}" if before else "at its end"
            raise refusal(f"there is no program {where}")
        self._pipeline.append(tuple(self._argv))
        self._argv = []

    def _end_pipeline(self) -> None:
        at_end = self._at >= len(self._text)
        self._end_command("" if at_end else "&&")
        self._list.append(tuple(self._pipeline))
        self._pipeline = []

    def _refuse(self, char: str) -> NoReturn:
        two = self._text[self._at : self._at + 2]
        if two in ("||", "|&"):
            raise refusal(f"{two!r} at character {self._at + 1}: only | and && are supported")
        if two in ("$(", "${") or char == "$":
            what = "command substitution needs" if two == "$(" else "variables need"
            raise refusal(
                f"{two!r} at character {self._at + 1}: {what} a shell; quote it with '…' to pass it literally"
            )
        raise refusal(f"{char!r} at character {self._at + 1}: {_REFUSED[char]}")
