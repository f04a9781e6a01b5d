"""Which of a program's words are flags, which are their values, which are operands?

Read as GNU and POSIX programs read them, without abbreviations. A word that may turn out to be a flag when it runs
is refused, except for programs that no flag can make do harm.
"""

from typing import NamedTuple

from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Open, Word, may_be_flag, shown


class NotKnown(Exception):
    """The command does something that the specification does not say; the message tells what."""


class RunsCode(NotKnown):
    """Its words are understood; what it does is decided by code or settings that lie in the workspace."""


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
    reader = _Reader(program, words)
    reader.run()
    return Arguments(reader.flags, reader.operands)


class _Reader:
    __slots__ = ("_at", "_program", "_table", "_words", "flags", "operands")

    def __init__(self, program: Program, words: list[Word]) -> None:
        self._program, self._words, self._table = program, words, program.flags
        self._at = 0
        self.flags: list[tuple[str, Word | None]] = []
        self.operands: list[Word] = []

    def run(self) -> None:
        words, count = self._words, len(self._words)
        while self._at < count:
            word = words[self._at]
            self._at += 1
            if type(word) is not str:
                self._loose(word)
            elif word[:1] != "-" or word == "-" or word in self._program.dashed:
                self.operands.append(word)
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
        self.operands.extend(words[self._at :])
        self._at = count

    def _loose(self, word: Word) -> None:
        if may_be_flag(word) and not self._program.harmless:
            raise NotKnown(f"`{shown(word)}` may turn out to be a flag")
        self.operands.append(word)
        if self._program.stops:
            self.operands.extend(self._words[self._at :])
            self._at = len(self._words)

    def _value(self, flag: str) -> Word:
        if self._at >= len(self._words):
            raise NotKnown(f"{flag} without its value")
        value = self._words[self._at]
        self._at += 1
        several = not isinstance(value, str) and not (isinstance(value, Open) and value.single)
        if several and not self._program.harmless:
            raise NotKnown(f"the value of {flag} may be several words")
        return value

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
