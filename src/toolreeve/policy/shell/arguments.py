"""Which of a program's words are flags, which are their values, which are operands?

Read as GNU and POSIX programs read them, without abbreviations. A word that may turn out to be a flag when it runs
is refused, except for programs that no flag can make do harm.
"""

from functools import lru_cache
from typing import NamedTuple

from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Open, Word, may_be_flag, shown

_LONGEST_SHAPE, _LONGEST_FLAG = 32, 128


class NotKnown(Exception):
    """The command does something that the specification does not say; the message tells what."""


class RunsCode(NotKnown):
    """Its words are understood; what it does is decided by code or settings that lie in the workspace."""


class Reading(NamedTuple):
    """Where among the words the flags' values and the operands stand; a value may also be part of its flag's word."""

    flags: list[tuple[str, int | str | None]]
    operands: list[int]


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
    # How words are read depends on those that look like flags, not on what the others say.
    shape = tuple([word if type(word) is not str or word[:1] == "-" else "" for word in words])
    brief = len(shape) <= _LONGEST_SHAPE and max(map(len, shape), default=0) <= _LONGEST_FLAG
    flags, operands = (_remembered if brief else _read)(program, shape)
    return Arguments(
        [(flag, words[value] if type(value) is int else value) for flag, value in flags],  # type: ignore[misc]
        [words[at] for at in operands],
    )


def _read(program: Program, shape: tuple[Word, ...]) -> Reading:
    return _Reader(program, shape).run()


_remembered = lru_cache(maxsize=512)(_read)


class _Reader:
    __slots__ = ("_at", "_program", "_table", "_words", "flags", "operands")

    def __init__(self, program: Program, words: tuple[Word, ...]) -> None:
        self._program, self._words, self._table = program, words, program.flags
        self._at = 0
        self.flags: list[tuple[str, int | str | None]] = []
        self.operands: list[int] = []

    def run(self) -> Reading:
        """Up to the last word that may be a flag; what stands after it, and is no flag's value, are operands."""
        words, count = self._words, len(self._words)
        last = next((at for at in range(count, 0, -1) if words[at - 1] != ""), 0)
        while self._at < last:
            word = words[self._at]
            self._at += 1
            if type(word) is not str:
                self._loose(word)
            elif word[:1] != "-" or word == "-" or word in self._program.dashed:
                self.operands.append(self._at - 1)
                if self._program.stops:
                    break
            elif word == "--" and not self._program.single:
                break
            elif word in self._program.refused or word.partition("=")[0] in self._program.refused:
                raise NotKnown(f"the flag {word.partition('=')[0]}")
            elif word[1] == "-" or self._program.single:
                self._long(word)
            else:
                self._cluster(word)
        self.operands.extend(range(self._at, count))
        return Reading(self.flags, self.operands)

    def _loose(self, word: Word) -> None:
        if may_be_flag(word) and not self._program.harmless:
            raise NotKnown(f"`{shown(word)}` may turn out to be a flag")
        self.operands.append(self._at - 1)
        if self._program.stops:
            self.operands.extend(range(self._at, len(self._words)))
            self._at = len(self._words)

    def _value(self, flag: str) -> int:
        if self._at >= len(self._words):
            raise NotKnown(f"{flag} without its value")
        value = self._words[self._at]
        self._at += 1
        several = not isinstance(value, str) and not (isinstance(value, Open) and value.single)
        if several and not self._program.harmless:
            raise NotKnown(f"the value of {flag} may be several words")
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
