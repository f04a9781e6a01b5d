"""Option check: refuses values that could be options which run programs.

An option of a listed program carries a value only if it is listed as plain. For a program that is not listed, options
that run something, judging by their name, carry none.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolreeve.core import evaluators
from toolreeve.scripted.checks.check_site import Checker, CheckSite
from toolreeve.scripted.words import Word, first_taint

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
        cursor = _OptionCursor(name=name, runner=runner, command=certain, local=_is_local(arguments))
        for word in arguments:
            if word.taint:
                self._word(word, cursor)
            cursor.read(word)

    def _word(self, word: Word, cursor: "_OptionCursor") -> None:
        could = f"could be an option with which {cursor.name} runs programs"
        runner = cursor.runner
        start = _start(word)
        self._checker.begin(word, runner.anywhere, could)
        self._address(word, cursor)
        if cursor.takes_next and not word.is_many:
            return
        if cursor.is_option(start):
            self._checker.refuse(word, "" if _carries(start, cursor.taken, runner) else word.taint, could, ENUM)
        elif start and evaluators.find_beginning(start, runner.beginnings):
            self._checker.refuse(word, word.taint, could, ENUM)
        else:
            self._operand(word, cursor)
            self._checker.begin(word, cursor.beginnings, could)

    def _address(self, word: Word, cursor: "_OptionCursor") -> None:
        """A word that names another machine is passed to the program that connects to it."""
        what = f"could make {cursor.name} start a program, as an address"
        glued = re.match(r"(--\w+)=", word.start)
        addressed = (glued[1] if glued else cursor.option) in cursor.runner.addressed and not cursor.local
        shapes = ["host:"] if addressed else []
        if not cursor.takes_next and not glued:
            shapes += [each for each in cursor.runner.beginnings if each == "user@-"]
        if cursor.command in cursor.runner.addresses:
            shapes.append("helper::")
        before = word.start if glued else ""
        for index, part in enumerate(word.parts):
            if isinstance(part, str):
                before = part
                if "/" in part and not part.endswith("://"):
                    return
                continue
            is_host = before.endswith(("://", "@")) and not cursor.takes_next
            first = is_host or (addressed and not index)
            self._checker.begin(Word(word.node, (part,)), ("-", *shapes) if first else tuple(shapes), what)
            before = ""

    def _operand(self, word: Word, cursor: "_OptionCursor") -> None:
        name = cursor.name
        runner = cursor.runner
        if not runner.operands:
            self._checker.refuse(word, word.taint, f"would be code for {name}", ENUM)
        if runner.refused and not cursor.seen_operand and not word.start:
            self._checker.refuse(word, word.taint, f"would choose the command of {name}", ENUM)
        if runner.anchored and not word.start:
            self._checker.refuse(word, word.taint, f"could be a command for {name}", 'write ./ before it: ./"{{…}}"')
        before = "" if cursor.ended else cursor.before
        if before.startswith("-") and before != "-" and not _is_known(before, runner) and "=" not in before:
            fix = "put -- before it, or give the parameter an `enum`"
            self._checker.refuse(
                word, word.taint, f"follows {before} of {name}, which is not known to take plain text", fix
            )

    def _refuse_all(self, name: str, command: str, arguments: Words) -> None:
        texts = [word.text for word in arguments]
        reads = (
            name == "git" and command == "config" and any(text in ("--get", "--get-all", "--list") for text in texts)
        )
        reads = reads or (command == "submodule" and "foreach" not in texts)
        for word in arguments:
            self._checker.refuse(word, "" if reads else word.taint, f"would be evaluated by {name} {command}", ENUM)

    def _from_beside(self, name: str, arguments: Words, site: CheckSite) -> None:
        """Programs that find code or options in their environment, their input, or a file given to them."""
        place = arguments[0] if arguments else Word(site.node, ())
        texts = [word.text or word.start for word in arguments]
        if name in ("make", "gmake"):
            taint = site.environment or self._checker.flow.tainted_environment
            self._checker.refuse(place, taint and f"${taint}", "would be expanded by make, from its environment", ENUM)
        if name in ("ed", "red") or (name in ("make", "gmake") and any(text.startswith("-f") for text in texts)):
            self._checker.refuse(place, site.fed, f"would reach {name} as code, through its input", ENUM)
        fixed = " ".join(texts)
        taint = first_taint(arguments)
        through = f"would reach {name} through {texts[0]!r}, which may run it" if texts else ""
        if name == "git" and _GIT_SETTINGS_THAT_RUN.search(fixed):
            self._checker.refuse(place, taint, through, ENUM)
        if name == "tar" and _OLD_STYLE.match(fixed):
            self._checker.refuse(place, taint, through, "spell it with dashes")
        from_file = {"tar": r"-\w*T|--files-f", "curl": r"-\w*K|--config", "make": "-f|--f", "gmake": "-f|--f"}.get(
            name, "@"
        )
        if "--verbatim-files-from" in texts or not any(re.match(from_file, text) for text in texts):
            return
        named = (
            self._checker.file_taint(Word(word.node, (text.lstrip("@"),)))
            for word, text in zip(arguments, texts, strict=True)
        )
        fix = "put --verbatim-files-from before it" if name == "tar" else ENUM
        self._checker.refuse(place, site.fed or next(filter(None, named), ""), f"would reach {name} as options", fix)

    def check_unlisted(self, name: str, arguments: Words) -> None:
        before = ""
        ended = False
        for word in arguments:
            start = word.text if word.text is not None else word.start
            if word.taint and not ended:
                option = start.partition("=")[0] if start.startswith("-") else before
                if option in evaluators.CODE_LETTERS or re.fullmatch(f"--?(?:{evaluators.OPTION_NAMES})", option):
                    fix = "give the parameter an `enum`, or say `allow_code: true`"
                    self._checker.refuse(word, word.taint, f"could be code for {name}: it follows {option}", fix)
                if self._checker.can_begin(word):
                    self._checker.begin(word, ("-",), "could be an option")
            before = start if word.text is not None else ""
            ended = ended or before == "--"


def _start(word: Word) -> str:
    return word.text if word.text is not None else word.start


def _is_local(arguments: Words) -> bool:
    return any(word.text == "--force-local" for word in arguments)


@dataclass(slots=True, kw_only=True)
class _OptionCursor:
    """The position of the check in the words of a program. `command` is empty before it, or if it is not certain;
    `local`: a colon in the name of an archive does not mean a host."""

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
        """After `--` a dash begins no option; find has no such end, and others pass the word on."""
        if not self.ended or self.name in ("find", "rsync", "scp"):
            return self.runner.beginnings
        return tuple(each for each in self.runner.beginnings if each != "-")

    @property
    def option(self) -> str:
        """The option, written alone, that the letters before this word end with."""
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
    """The words that may be the subcommand: several if one may belong to an option before it."""
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
    """Whether `--name=` or `-n` may have the caller's text directly after it."""
    name, equals, _ = start.partition("=")
    if len(name) > 2 and equals:
        return name in runner.data or name in runner.loose or name in taken or start[:2] in taken
    return len(start) >= 2 and start[:2] in taken
