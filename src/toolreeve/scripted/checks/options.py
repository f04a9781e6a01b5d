"""Option check: refuses values that could be options which run programs.

An option of a listed program carries a value only if it is listed as plain. Of a program that is not listed, options
that by their name run something carry none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolreeve.core import evaluators
from toolreeve.scripted.checks.check_site import Checker, CheckSite
from toolreeve.scripted.words import Word

Words = Sequence[Word]
ENUM = "give the parameter an `enum`, or write the word yourself"
_OLD_STYLE = re.compile(r"(?!-)(?![xctvzjJapkhOruA]*f?[xctvzjJapkhOruA]*(?:\s|$))[A-Za-z]+(?:\s|$)")
"""The first word of tar, without a dash, with letters for options that may run something."""

_GIT_SETTINGS_THAT_RUN = re.compile(r"alias\.|protocol\.", re.IGNORECASE)
"""With an alias the operands of git are those of a program, with `protocol.ext.allow` an address can be a command."""


class OptionCheck:
    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def check(self, name: str, runner: evaluators.Runner, arguments: Words, site: CheckSite) -> None:
        self._from_beside(name, arguments, site)
        commands = find_commands(arguments, runner)
        for command in commands:
            if command in runner.refused:
                self._refuse_all(name, command, arguments)
        certain = commands[0] if len(commands) == 1 else ""
        reader = _Reader(name=name, runner=runner, command=certain, local=_is_local(arguments))
        for word in arguments:
            if word.dirt:
                self._word(word, reader)
            reader.read(word)

    def _word(self, word: Word, reader: "_Reader") -> None:
        could = f"could be an option with which {reader.name} runs programs"
        runner, start = reader.runner, _start(word)
        self._checker.begin(word, runner.anywhere, could)
        self._address(word, reader)
        if reader.takes_next and not word.is_many:
            return
        if reader.is_option(start):
            self._checker.refuse(word, "" if _carries(start, reader.taken, runner) else word.dirt, could, ENUM)
        elif start and evaluators.find_beginning(start, runner.beginnings):
            self._checker.refuse(word, word.dirt, could, ENUM)
        else:
            self._operand(word, reader)
            self._checker.begin(word, reader.beginnings, could)

    def _address(self, word: Word, reader: "_Reader") -> None:
        """A word that names another machine is given to the program that connects to it."""
        what = f"could make {reader.name} start a program, as an address"
        glued = re.match(r"(--\w+)=", word.start)
        addressed = (glued[1] if glued else reader.option) in reader.runner.addressed and not reader.local
        shapes = ["host:"] if addressed else []
        if not reader.takes_next and not glued:
            shapes += [each for each in reader.runner.beginnings if each == "user@-"]
        if reader.command in reader.runner.addresses:
            shapes.append("helper::")
        before = word.start if glued else ""
        for index, part in enumerate(word.parts):
            if isinstance(part, str):
                before = part
                if "/" in part and not part.endswith("://"):
                    return
                continue
            is_host = before.endswith(("://", "@")) and not reader.takes_next
            first = is_host or (addressed and not index)
            self._checker.begin(Word(word.node, (part,)), ("-", *shapes) if first else tuple(shapes), what)
            before = ""

    def _operand(self, word: Word, reader: "_Reader") -> None:
        name, runner = reader.name, reader.runner
        if not runner.operands:
            self._checker.refuse(word, word.dirt, f"would be code for {name}", ENUM)
        if runner.refused and not reader.seen_operand and not word.start:
            self._checker.refuse(word, word.dirt, f"would choose the command of {name}", ENUM)
        if runner.anchored and not word.start:
            self._checker.refuse(word, word.dirt, f"could be a command for {name}", 'write ./ before it: ./"{{…}}"')
        before = "" if reader.ended else reader.before
        if before.startswith("-") and before != "-" and not _is_known(before, runner) and "=" not in before:
            fix = "put -- before it, or give the parameter an `enum`"
            self._checker.refuse(
                word, word.dirt, f"stands behind {before} of {name}, which is not known to take plain text", fix
            )

    def _refuse_all(self, name: str, command: str, arguments: Words) -> None:
        texts = [word.text for word in arguments]
        reads = (
            name == "git" and command == "config" and any(text in ("--get", "--get-all", "--list") for text in texts)
        )
        reads = reads or (command == "submodule" and "foreach" not in texts)
        for word in arguments:
            self._checker.refuse(word, "" if reads else word.dirt, f"would be evaluated by {name} {command}", ENUM)

    def _from_beside(self, name: str, arguments: Words, site: CheckSite) -> None:
        """Programs that find code or options in their environment, their input, or a file that is named to them."""
        place = arguments[0] if arguments else Word(site.node, ())
        texts = [word.text or word.start for word in arguments]
        if name in ("make", "gmake"):
            dirt = site.environment or self._checker.flow.dirty_environment
            self._checker.refuse(place, dirt and f"${dirt}", "would be expanded by make, from its environment", ENUM)
        if name in ("ed", "red") or (name in ("make", "gmake") and any(text.startswith("-f") for text in texts)):
            self._checker.refuse(place, site.fed, f"would reach {name} as code, through its input", ENUM)
        fixed = " ".join(texts)
        dirt = next((word.dirt for word in arguments if word.dirt), "")
        through = f"would reach {name} through {texts[0]!r}, which may run it" if texts else ""
        if name == "git" and _GIT_SETTINGS_THAT_RUN.search(fixed):
            self._checker.refuse(place, dirt, through, ENUM)
        if name == "tar" and _OLD_STYLE.match(fixed):
            self._checker.refuse(place, dirt, through, "spell it with dashes")
        from_file = {"tar": r"-\w*T|--files-f", "curl": r"-\w*K|--config", "make": "-f|--f", "gmake": "-f|--f"}.get(
            name, "@"
        )
        if "--verbatim-files-from" in texts or not any(re.match(from_file, text) for text in texts):
            return
        named = (
            self._checker.file_dirt(Word(word.node, (text.lstrip("@"),)))
            for word, text in zip(arguments, texts, strict=True)
        )
        fix = "put --verbatim-files-from before it" if name == "tar" else ENUM
        self._checker.refuse(place, site.fed or next(filter(None, named), ""), f"would reach {name} as options", fix)

    def check_unlisted(self, name: str, arguments: Words) -> None:
        before, ended = "", False
        for word in arguments:
            start = word.text if word.text is not None else word.start
            if word.dirt and not ended:
                option = start.partition("=")[0] if start.startswith("-") else before
                if option in evaluators.CODE_LETTERS or re.fullmatch(f"--?(?:{evaluators.OPTION_NAMES})", option):
                    fix = "give the parameter an `enum`, or say `allow_code: true`"
                    self._checker.refuse(word, word.dirt, f"could be code for {name}: it stands behind {option}", fix)
                if self._checker.can_begin(word):
                    self._checker.begin(word, ("-",), "could be an option")
            before = start if word.text is not None else ""
            ended = ended or before == "--"


def _start(word: Word) -> str:
    return word.text if word.text is not None else word.start


def _is_local(arguments: Words) -> bool:
    return any(word.text == "--force-local" for word in arguments)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Where the check stands in the words of a program. `command` is empty in front of it, or where it is not certain;
    `local`: a colon in the name of an archive is no host."""

    name: str
    runner: evaluators.Runner
    command: str
    local: bool
    before: str = ""
    ended: bool = False
    seen_operand: bool = False

    @property
    def taken(self) -> frozenset[str]:
        """The options that certainly take the next word."""
        return self.runner.taken(self.command if self.seen_operand else "")

    @property
    def beginnings(self) -> tuple[str, ...]:
        """Behind `--` a dash begins no option; find has no such end, and others hand the word on."""
        if not self.ended or self.name in ("find", "rsync", "scp"):
            return self.runner.beginnings
        return tuple(each for each in self.runner.beginnings if each != "-")

    @property
    def option(self) -> str:
        """The option, spelled alone, that the last letters before this word end with."""
        if self.name == "tar" and not self.before.startswith("-") and self.before.endswith("f"):
            return "-f"
        return f"-{self.before[-1]}" if re.fullmatch(r"-[A-Za-z0-9]+", self.before) else self.before

    @property
    def takes_next(self) -> bool:
        return not self.ended and _takes_word(self.before, self.taken, self.runner)

    def is_option(self, start: str) -> bool:
        return start.startswith("-") and start != "-" and not self.ended

    def read(self, word: Word) -> None:
        start = _start(word)
        belongs = self.takes_next or (not self.seen_operand and self.before in self.runner.front)
        if not self.is_option(start) and not belongs:
            self.seen_operand = True
        self.before = start if word.text is not None and not belongs else ""
        self.ended = self.ended or (self.before == "--" and self.name != "find")


def find_commands(arguments: Words, runner: evaluators.Runner) -> list[str]:
    """The words that may be the subcommand: several where one may belong to an option before it."""
    found: list[str] = []
    before = ""
    for word in arguments:
        start = _start(word)
        if before in runner.front or before in runner.data:
            before = ""
        elif start.startswith("-"):
            before = start
        else:
            found.append(start)
            if not before or "=" in before or _all_flags(before, runner):
                break
            before = ""
    return found


def _takes_word(option: str, taken: frozenset[str], runner: evaluators.Runner) -> bool:
    """Whether the next word is the option's, as data."""
    if option in taken:
        return True
    cluster = re.fullmatch(r"-[A-Za-z0-9]+", option)
    return bool(cluster) and f"-{option[-1]}" in taken and _all_flags(option[:-1], runner)


def _all_flags(option: str, runner: evaluators.Runner) -> bool:
    """Whether it certainly takes no word: alone, or as a cluster of letters."""
    if option in runner.flags:
        return option not in runner.loose
    return all(f"-{letter}" in runner.flags and f"-{letter}" not in runner.loose for letter in option[1:])


def _is_known(option: str, runner: evaluators.Runner) -> bool:
    known = runner.flags | runner.data | runner.loose
    if option in known or any(option in options for options in runner.taking.values()):
        return True
    return re.fullmatch(r"-[A-Za-z0-9]+", option) is not None and all(f"-{letter}" in known for letter in option[1:])


def _carries(start: str, taken: frozenset[str], runner: evaluators.Runner) -> bool:
    """Whether `--name=` or `-n` may have the caller's text right behind it."""
    name, equals, _ = start.partition("=")
    if len(name) > 2 and equals:
        return name in runner.data or name in runner.loose or name in taken or start[:2] in taken
    return len(start) >= 2 and start[:2] in taken
