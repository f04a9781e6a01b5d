"""Argument parser: flags, their values, and operands.

Reads words as GNU and POSIX programs do, without abbreviations. A word that may expand to a flag is refused, unless the
specification says that no flag does harm: then it counts as an operand, and as every flag that is `supposed`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, may_be_flag, several, shown
from toolreeve.policy.shell.programs.spec import Program

_ELSEWHERE = re.compile(r"/(?!\Z)|\*\*")
"""A pattern over paths; one that ends in a slash matches directories, which a flag cannot read as a file."""
_FLAG_WITH_VALUE = re.compile(r"(--[a-z0-9-]+)=")
_LONGEST_SHAPE = 32
_LONGEST_FLAG = 128


class NotKnown(Exception):
    """The command does something that its specification does not cover; the message says what."""


class RunsCode(NotKnown):
    """The arguments are understood, but code or settings in the workspace decide what happens."""


class ArgumentReading(NamedTuple):
    """Positions of the flags' values and the operands among the words; a value may also be part of its flag's word."""

    flags: list[tuple[str, int | Word | None]]
    operands: list[int]
    loose: bool


class Arguments(NamedTuple):
    flags: list[tuple[str, Word | None]]
    operands: list[Word]

    def has(self, *names: str) -> bool:
        for flag, _ in self.flags:  # noqa: SIM110 - hot: a generator would cost more
            if flag in names:
                return True
        return False


def read(program: Program, words: list[Word]) -> Arguments:
    """Raises `NotKnown` for a flag that is not listed or a value that is missing."""
    if program.obeys:
        _check_obeyed(program.obeys, words)
    # Only words that look like flags decide how the words are read.
    shape = tuple([word if type(word) is not str or word[:1] == "-" else "" for word in words])
    brief = len(shape) <= _LONGEST_SHAPE and max(map(len, shape), default=0) <= _LONGEST_FLAG
    flags, operands, loose = (_read_cached if brief else _read)(program, shape)
    if loose:
        _check_first(program, words[operands[0]])
    return Arguments(
        [(flag, words[value] if type(value) is int else value) for flag, value in flags],  # type: ignore[misc]
        [words[at] for at in operands],
    )


def _check_first(program: Program, first: Word) -> None:
    """`grep /etc/passwd *`: a name that begins with `-e` would be the pattern, and the pattern a file."""
    if program.harmless is True or program.operands[:1] != ("text?",):
        return
    if not several(first) and (not isinstance(first, str) or "/" in first or first == ".."):
        raise NotKnown(f"`{shown(first)}` may be a file, if another word expands to a flag (put `--` before them)")


def _check_obeyed(sign: str, words: list[Word]) -> None:
    """Some programs replace `@file` by the words of the file before they parse flags."""
    for word in words:
        text = shown(word)
        wild = text[:1] in "*?[" if isinstance(word, Glob) else type(word) is not str and text[:1] == "…"
        if wild or text.startswith(sign):
            raise NotKnown(f"`{text}` may name a file of more words (put `./` before it)")


def _read(program: Program, shape: tuple[Word, ...]) -> ArgumentReading:
    return _Reader(program, shape).run()


_read_cached = lru_cache(maxsize=512)(_read)


def _may_be_flag(word: Word) -> bool:
    return may_be_flag(word) and not (isinstance(word, Dynamic) and word.places == ())  # which is no word at all


class _Reader:
    """`_loose`: a word that may be a flag has been read, and may take the next one for its value."""

    __slots__ = ("_at", "_loose", "_program", "_table", "_words", "flags", "operands")

    def __init__(self, program: Program, words: tuple[Word, ...]) -> None:
        self._program = program
        self._words = words
        self._table = program.flags
        self._at = 0
        self._loose = False
        self.flags: list[tuple[str, int | Word | None]] = []
        self.operands: list[int] = []

    def run(self) -> ArgumentReading:
        """Read up to the last word that may be a flag; the rest, unless a flag takes it as its value, are operands."""
        words = self._words
        count = len(words)
        last = next((at for at in range(count, 0, -1) if words[at - 1] != ""), 0)
        while self._at < last:
            word = words[self._at]
            self._at += 1
            if type(word) is not str:
                self._open(word)
            elif word[:1] != "-" or word == "-" or word in self._program.dashed:
                self.operands.append(self._at - 1)
                if self._program.stops:
                    break
            elif word == "--" and not self._program.single:
                if self._loose and self._program.harmless is not True:
                    raise NotKnown("`--` after a word that may expand to a flag and take it as its value")
                break
            elif word.partition("=")[0] in self._program.refused:
                raise NotKnown(f"the flag {word.partition('=')[0]}")
            elif word[1] == "-" or self._program.single:
                self._long(word)
            else:
                self._cluster(word)
        self.operands.extend(range(self._at, count))
        return ArgumentReading(self.flags, self.operands, self._loose)

    def _open(self, word: Word) -> None:
        if _may_be_flag(word):
            if self._flag_with_value(word):
                return
            self._check_harmless(word)
            self._loose = True
            self._suppose()
        self.operands.append(self._at - 1)
        if self._program.stops:
            self.operands.extend(range(self._at, len(self._words)))
            self._at = len(self._words)

    def _flag_with_value(self, word: Word) -> bool:
        """`--include=*.c`: whatever it matches is that flag with some value."""
        found = _FLAG_WITH_VALUE.match(word.text) if isinstance(word, Glob) else None
        if found is None or self._table.get(found[1]) not in ("text", "aim") or found[1] in self._program.refused:
            return False
        if self._program.handler and not self._program.harmless:
            return False
        self.flags.append((found[1], word))
        if self._program.handler:
            self._suppose()
        return True

    def _check_harmless(self, word: Word) -> None:
        """If flags only read other files, a bare name is harmless: a file that it names as a flag lies beside it."""
        harmless = self._program.harmless
        if harmless is True or (harmless and isinstance(word, Glob) and not _ELSEWHERE.search(word.text)):
            return
        advice = "" if self._program.single else " (put `--` before it)"
        raise NotKnown(f"`{shown(word)}` may expand to a flag{advice}")

    def _suppose(self) -> None:
        self.flags.extend((flag, None) for flag in self._program.supposed)

    def _value(self, flag: str) -> int:
        if self._at >= len(self._words):
            raise NotKnown(f"{flag} without its value")
        value = self._words[self._at]
        self._at += 1
        if type(value) is not str and several(value):
            raise NotKnown(f"the value of {flag} may be several words (quote it)")
        if self._loose:  # and may have taken the flag as its own value
            self.operands.append(self._at - 1)
        return self._at - 1

    def _long(self, word: str) -> None:
        name, equals, value = word.partition("=")
        role = self._table.get(name)
        if role is None:
            if not self._program.prefixes or not word.startswith(self._program.prefixes):
                raise NotKnown(f"the flag {name}")
        elif role == "" and equals:
            raise NotKnown(f"{name} takes no value")
        elif role == "":
            self.flags.append((name, None))
        elif equals:
            self.flags.append((name, value))
        elif name in self._program.maybe:
            self.flags.append((name, None))
        else:
            self.flags.append((name, self._value(name)))

    def _cluster(self, word: str) -> None:
        table = self._table
        index = 1
        length = len(word)
        if self._program.number and word[1:].isdigit():
            return
        while index < length:
            flag = "-" + word[index]
            index += 1
            if flag in self._program.refused:
                raise NotKnown(f"the flag {flag}")
            role = table.get(flag)
            if role is None:
                raise NotKnown(f"the flag {flag}" if length == 2 else f"the flag {flag} in {word}")
            if role == "":
                self.flags.append((flag, None))
                continue
            rest = word[index:]
            if rest or flag in self._program.maybe:
                self.flags.append((flag, rest or None))
            else:
                self.flags.append((flag, self._value(flag)))
            return
