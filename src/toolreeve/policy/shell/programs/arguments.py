"""Which of a program's words are flags, which are their values, which are operands?

Read as GNU and POSIX programs read them, without abbreviations. A word that may turn out to be a flag when it runs
is refused, except where the specification says that no flag does harm: then it counts as an operand, and as every flag
that the specification supposes.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, may_be_flag, several, shown
from toolreeve.policy.shell.programs.spec import Program

_ELSEWHERE = re.compile(r"/(?!\Z)|\*\*")
"""A pattern over paths; what ends in a slash is a directory, which is not read where a flag names a file."""
_FLAG_WITH_VALUE = re.compile(r"(--[a-z0-9-]+)=")
_LONGEST_SHAPE, _LONGEST_FLAG = 32, 128


class NotKnown(Exception):
    """The command does something that the specification does not say; the message tells what."""


class RunsCode(NotKnown):
    """Its words are understood; what it does is decided by code or settings that lie in the workspace."""


class ArgumentReading(NamedTuple):
    """Where among the words the flags' values and the operands stand; a value may also be part of its flag's word."""

    flags: list[tuple[str, int | Word | None]]
    operands: list[int]
    loose: bool


class Arguments(NamedTuple):
    flags: list[tuple[str, Word | None]]
    operands: list[Word]

    def has(self, *names: str) -> bool:
        for flag, _ in self.flags:  # noqa: SIM110 - it is asked often, and a generator costs more than the answer
            if flag in names:
                return True
        return False


def read(program: Program, words: list[Word]) -> Arguments:
    """Raises `NotKnown` for a flag that is not listed or a value that is missing."""
    if program.obeys:
        _check_obeyed(program.obeys, words)
    # How words are read depends on those that look like flags, not on what the others say.
    shape = tuple([word if type(word) is not str or word[:1] == "-" else "" for word in words])
    brief = len(shape) <= _LONGEST_SHAPE and max(map(len, shape), default=0) <= _LONGEST_FLAG
    flags, operands, loose = (_remembered if brief else _read)(program, shape)
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
        raise NotKnown(f"`{shown(first)}` may turn out to be a file, if another word is a flag (put `--` before them)")


def _check_obeyed(sign: str, words: list[Word]) -> None:
    """Some programs put the words of a file in place of `@file`, before they look for flags."""
    for word in words:
        text = shown(word)
        wild = text[:1] in "*?[" if isinstance(word, Glob) else type(word) is not str and text[:1] == "…"
        if wild or text.startswith(sign):
            raise NotKnown(f"`{text}` may name a file of more words (put `./` before it)")


def _read(program: Program, shape: tuple[Word, ...]) -> ArgumentReading:
    return _Reader(program, shape).run()


_remembered = lru_cache(maxsize=512)(_read)


def _may_be_flag(word: Word) -> bool:
    return may_be_flag(word) and not (isinstance(word, Dynamic) and word.places == ())  # which is no word at all


class _Reader:
    """`_loose`: a word that may be a flag has been read, and may take the next one for its value."""

    __slots__ = ("_at", "_loose", "_program", "_table", "_words", "flags", "operands")

    def __init__(self, program: Program, words: tuple[Word, ...]) -> None:
        self._program, self._words, self._table = program, words, program.flags
        self._at, self._loose = 0, False
        self.flags: list[tuple[str, int | Word | None]] = []
        self.operands: list[int] = []

    def run(self) -> ArgumentReading:
        """Up to the last word that may be a flag; what stands after it, and is no flag's value, are operands."""
        words, count = self._words, len(self._words)
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
                    raise NotKnown("`--` after a word that may turn out to be a flag, and take it for its value")
                break
            elif word in self._program.refused or word.partition("=")[0] in self._program.refused:
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
        """`--include=*.c`: whatever it matches is that flag, each time with another text."""
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
        """Where flags read other files, a bare name is no harm: the file that a flag in it names lies beside it."""
        harmless = self._program.harmless
        if harmless is True or (harmless and isinstance(word, Glob) and not _ELSEWHERE.search(word.text)):
            return
        advice = "" if self._program.single else " (put `--` before it)"
        raise NotKnown(f"`{shown(word)}` may turn out to be a flag{advice}")

    def _suppose(self) -> None:
        self.flags.extend((flag, None) for flag in self._program.supposed)

    def _value(self, flag: str) -> int:
        if self._at >= len(self._words):
            raise NotKnown(f"{flag} without its value")
        value = self._words[self._at]
        self._at += 1
        if type(value) is not str and several(value):
            raise NotKnown(f"the value of {flag} may be several words (quote it)")
        if self._loose:  # and may have taken the flag for its own value
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
        table, index, length = self._table, 1, len(word)
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
