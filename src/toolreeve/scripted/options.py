"""Option check: could a value be, or belong to, an option that makes a program run something?

An option of a listed program carries a value only if it is listed as plain. Of a program that is not listed, options
that by their name run something carry none.
"""

import re
from collections.abc import Sequence

from toolreeve.core import evaluators
from toolreeve.scripted.site import Checker, Site
from toolreeve.scripted.words import Word

Words = Sequence[Word]
ENUM = "give the parameter an `enum`, or write the word yourself"
_OLD_STYLE = re.compile(r"(?!-)(?![xctvzjJapkhOruA]*f?[xctvzjJapkhOruA]*(?:\s|$))[A-Za-z]+(?:\s|$)")
"""The first word of tar, without a dash, with letters for options that may run something."""

_GIT_SETTINGS_THAT_RUN = re.compile(r"alias\.|protocol\.", re.IGNORECASE)
"""With an alias the operands of git are those of a program, with `protocol.ext.allow` an address can be a command."""


class Options:
    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def check(self, name: str, runner: evaluators.Runner, arguments: Words, site: Site) -> None:
        could = f"could be an option with which {name} runs programs"
        before, ended, seen_operand = "", False, False
        self._from_beside(name, arguments, site)
        for word in arguments:
            start = word.text if word.text is not None else word.start
            is_option = start.startswith("-") and start != "-" and not ended
            if word.dirt and not (not ended and _takes_word(before, runner)):
                if is_option:
                    self._checker.refuse(word, "" if _carries(start, runner) else word.dirt, could, ENUM)
                elif start.startswith(runner.beginnings):
                    self._checker.refuse(word, word.dirt, could, ENUM)
                else:
                    self._operand(name, runner, word, before="" if ended else before, first=not seen_operand)
                    if not ended or name == "find":
                        self._checker.begin(word, runner.beginnings, could)
            if not is_option and not _takes_word(before, runner):
                if not seen_operand and start in runner.refused:
                    self._refuse_all(name, start, arguments)
                seen_operand = True
            before = start if word.text is not None else ""
            ended = ended or (before == "--" and name != "find")

    def _operand(self, name: str, runner: evaluators.Runner, word: Word, *, before: str, first: bool) -> None:
        if not runner.operands:
            self._checker.refuse(word, word.dirt, f"would be code for {name}", ENUM)
        if runner.refused and first and not word.start:
            self._checker.refuse(word, word.dirt, f"would choose the command of {name}", ENUM)
        if runner.anchored and not word.start:
            self._checker.refuse(word, word.dirt, f"could be a command for {name}", 'write ./ before it: ./"{{…}}"')
        if before.startswith("-") and before != "-" and not _is_flag(before, runner) and "=" not in before:
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

    def _from_beside(self, name: str, arguments: Words, site: Site) -> None:
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
                leading = word.leading
                if leading is not None and leading.hole is not None and not before.startswith("-"):
                    self._checker.begin(word, ("-",), "could be an option")
            before = start if word.text is not None else ""
            ended = ended or before == "--"


def _takes_word(option: str, runner: evaluators.Runner) -> bool:
    """Whether the next word is the option's, as data."""
    if option in runner.data:
        return True
    cluster = re.fullmatch(r"-[A-Za-z0-9]+", option)
    return bool(cluster) and f"-{option[-1]}" in runner.data and _all_known(option[1:-1], runner)


def _all_known(letters: str, runner: evaluators.Runner) -> bool:
    return all(f"-{letter}" in runner.flags for letter in letters)


def _is_flag(option: str, runner: evaluators.Runner) -> bool:
    if option in runner.flags or option in runner.data:
        return True
    return re.fullmatch(r"-[A-Za-z0-9]+", option) is not None and _all_known(option[1:], runner)


def _carries(start: str, runner: evaluators.Runner) -> bool:
    """Whether `--name=` or `-n` may have the caller's text right behind it."""
    name, equals, _ = start.partition("=")
    if name.startswith("--") or equals:
        return bool(equals) and name in runner.data
    return len(start) >= 2 and start[:2] in runner.data
