"""Command check: refuses values that a program would take for code.

Uses the knowledge of programs in `core.evaluators`. For a program that is not listed there, a value may be an operand;
options that run something, judging by their name, may not carry one. Fails closed: a program that is not fixed gets no
value.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import product

from toolreeve.core import evaluators
from toolreeve.core.evaluators import plain_name
from toolreeve.scripted.checks.check_site import CheckSite
from toolreeve.scripted.checks.data_flow import ANY_FILE, DIRECTORIES, DataFlow
from toolreeve.scripted.checks.declarations import DECLARES
from toolreeve.scripted.checks.languages import STANDARD_INPUT, LanguageCheck
from toolreeve.scripted.checks.options import ENUM, OptionCheck
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.words import Node, Part, Unknown, Word, first_taint, text_of

Words = Sequence[Word]
_AFTER_CODE = "pass it after the code: bash -c '… \"$1\"' _ {{…}}"
_MAX_READINGS = 16
_RUN_IN_CONTAINER = ("exec", "run", "create")
_ENTRYPOINT = "write the program before it, or name it with --entrypoint"
_FIND_EXEC = ("-exec", "-execdir", "-ok", "-okdir")
_CONTAINERS = frozenset(
    {"docker", "podman", "nerdctl", "kubectl", "oc", "crictl", "lxc", "machinectl"} | {"apptainer", "singularity"}
)
_RECOGNISED_ANYWHERE = frozenset(
    {*evaluators.SHELLS, *evaluators.FOREIGN_SHELLS, *evaluators.INTERPRETERS, *evaluators.AWKS} - {"R", "rc", "nu"}
    | {"eval", "ssh", "xargs", "env", "sqlite3", "psql", "mysql", "make", "sed", "tar", "git", "split", "gcc", "cc"}
    | {"wget", "curl", "rsync", "vim", "vi", "find", "sort"}
)
"""Programs that are also recognised among the arguments of a program that may run them."""


class CommandCheck:
    """`begin` restricts what a value may begin with; `nested` inspects code that a shell gets as an argument."""

    def __init__(
        self,
        flow: DataFlow,
        begin: Callable[[Word, tuple[str, ...]], None],
        nested: Callable[[str, Node, CheckSite, frozenset[str]], None],
    ) -> None:
        self._flow = flow
        self._begin = begin
        self._nested = nested
        self._languages = LanguageCheck(self)
        self._options = OptionCheck(self)

    @property
    def flow(self) -> DataFlow:
        return self._flow

    def check(self, words: Words, site: CheckSite) -> None:
        """Raises TemplateProblem."""
        for reading in self._readings(words):
            if reading:
                self._run(reading, site, bare=True)

    def refuse(self, word: Word, taint: str, why: str, fix: str = "") -> None:
        if taint:
            raise TemplateProblem(f"{taint} {why}", line=word.node.start_point.row + 1, fix=fix)

    def refuse_code(self, word: Word, why: str, fix: str) -> None:
        """For a position of code: neither the caller's text, nor a file that contains it."""
        self.refuse(word, word.taint or self.file_taint(word), why, fix)

    def file_taint(self, word: Word) -> str:
        """Names the file if the script has written the caller's text to it."""
        tainted = self._flow.tainted_files
        if not tainted:
            return ""
        spelled = word.text if word.text is not None else word.end
        if ANY_FILE in tainted or self._flow.is_tainted_file(spelled or ""):
            return f"the file {spelled or text_of(word.node)}, written from a value,"
        names = {f"${part.variable}" for part in word.parts if isinstance(part, Unknown)}
        if names & tainted:
            return f"the file {text_of(word.node)}, written from a value,"
        return ""

    def begin(self, word: Word, beginnings: tuple[str, ...], what: str) -> None:
        """A word that begins with the caller's text: a value is restricted, a variable cannot be."""
        for each in word.beginning if beginnings else ():
            leading = each.leading
            if leading is None or leading.is_path:
                return
            if leading.hole is not None:
                self._begin(each, beginnings)
            elif leading.taint and not self._begin_assigned(leading, beginnings, what):
                self.refuse(word, leading.taint, what, 'put -- before it, or write ./"$x"')

    def can_begin(self, word: Word) -> bool:
        """Whether `begin` can restrict everything that the word may begin with."""
        parts = [each.leading for each in word.beginning if each.leading is not None]
        return all(
            part.hole is not None
            or part.is_path
            or not part.taint
            or self._flow.only_assigned(part.variable) is not None
            for part in parts
        )

    def _begin_assigned(self, leading: Unknown, beginnings: tuple[str, ...], what: str) -> bool:
        """Restrict the values assigned to a variable; False if something else may set it."""
        values = self._flow.only_assigned(leading.variable)
        for value in values or ():
            if evaluators.find_beginning(value.start, beginnings) and value.taint:
                self.refuse(value, value.taint, what, ENUM)
            self.begin(value, beginnings, what)
        return values is not None

    def _readings(self, words: Words) -> list[list[Word]]:
        """The words with variables of fixed content substituted; several if a variable may have several values."""
        choices = [self._resolved(word) for word in words]
        count = 1
        for choice in choices:
            count *= len(choice)
        if count > _MAX_READINGS:
            return [list(words)]
        return [[word for group in groups for word in group] for groups in product(*choices)]

    def _resolved(self, word: Word) -> list[list[Word]]:
        if word.is_whole_value and isinstance(word.parts[0], Unknown):
            part = word.parts[0]
            if part.array and (elements := self._flow.elements(part.array)) is not None:
                return [elements]
            if (texts := self._flow.constants(part.variable)) is not None:
                split = [[text] if part.quoted else text.split() for text in texts]
                return [[Word(word.node, (text,)) for text in group] for group in split]
        return [[Word(word.node, tuple(map(self._fixed, word.parts)))]]

    def _fixed(self, part: Part) -> Part:
        if isinstance(part, str):
            return part
        texts = self._flow.constants(part.variable)
        return texts[0] if texts is not None and len(texts) == 1 else part

    def name_of(self, word: Word) -> str | None:
        """The program; of `"$dir/tool"` the last component is enough."""
        if word.text is not None:
            return plain_name(word.text)
        return plain_name(word.end) if "/" in word.end else None

    def _run(self, words: Words, site: CheckSite, *, choosing: bool = True, bare: bool = False) -> None:
        """`bare`: no wrapper stands before it, so that a function of this name would run instead."""
        first, arguments = words[0], words[1:]
        self.refuse(first, first.taint, "would choose the program that runs", ENUM)
        name = self.name_of(first)
        if name is None:
            taint = site.fed or first_taint(arguments)
            self.refuse(
                first, taint, f"would reach a program that is not fixed: {text_of(first.node)}", "write its name"
            )
            return
        if bare and self._flow.is_function(first.text or "", site.node):
            return
        if "/" in (first.text or "/") or "PATH" in self._flow.assigned:
            self.refuse(first, self.file_taint(first), "would be run", "write the program yourself")
        self._check_code_files(name, first)
        if name in evaluators.WRAPPERS:
            self._wrapper(name, arguments, site)
        elif name in evaluators.SHELLS:
            self._shell(arguments, site)
        elif name == "alias":
            self.refuse(first, "an alias" if arguments else "", "can hide what runs", "write a function instead")
        elif name in ("eval", "trap"):
            self._same_shell(name, arguments, site)
        elif name in evaluators.BUILTINS:
            self._builtin(name, arguments, site)
        elif name in evaluators.JOINING or name in evaluators.FOREIGN_SHELLS:
            self._joining(name, arguments, site)
        elif not self._languages.check(name, arguments, site):
            self._ordinary(name, arguments, site, choosing=choosing)

    def _check_code_files(self, name: str, first: Word) -> None:
        """A file with the caller's text that the program executes without being given its name."""
        patterns = evaluators.CODE_FILES.get(name, ())
        if ANY_FILE in self._flow.tainted_files and name in evaluators.OBEYS_FOLDER:
            self.refuse(first, "a file that a value has named or brought", f"would be obeyed by {name}", ENUM)
        for file in sorted(self._flow.tainted_files):
            if not file.startswith("$") and any(fnmatchcase(file, pattern) for pattern in patterns):
                self.refuse(first, f"the file {file}, written from a value,", f"would be obeyed by {name}", ENUM)

    def _wrapper(self, name: str, arguments: Words, site: CheckSite) -> None:
        if name == "command" and any(word.text in ("-v", "-V") for word in arguments[:1]):
            return
        self._wrapped(name, arguments, site, 0, evaluators.WRAPPERS[name].operands)

    def _wrapped(self, name: str, arguments: Words, site: CheckSite, position: int, operands: int) -> None:
        """Check the program that follows from `position` on, after `operands` of the wrapper's own."""
        wrapper = evaluators.WRAPPERS[name]
        ended = False
        unclear = ""
        while position < len(arguments):
            word = arguments[position]
            start = word.text or word.start
            if name == "flock" and start in ("-c", "--command"):
                self._shell(arguments[position:], site)
                return
            if name == "env" and re.match(r"-\w*S|--split-string", start):
                self._split_string(word, arguments[position + 1 :], site)
                return
            if start.startswith("-") and not ended:
                self.refuse(word, word.taint, f"is part of an option of {name}, which runs programs", ENUM)
                ended = start == "--"
                taken = (start in wrapper.valued) + 2 * (start in wrapper.paired)
                unclear = "" if ended or taken or wrapper.is_flag(start) else start
                position += 1 + taken
                continue
            if unclear:
                self._wrapped_after_value(name, arguments, site, position, operands, unclear)
                unclear = ""
            if wrapper.assigns and re.match(r"\w+=", start):
                site = self._assigned(word, start, site)
                position += 1
            elif operands:
                operands -= 1
                position += 1
                self.begin(word, ("-",), f"could be an option of {name}")
            else:
                break
        inner = arguments[position:]
        if name == "xargs":
            self._xargs(arguments[:position], inner, site)
        elif inner:
            self._run(inner, site)

    def _wrapped_after_value(
        self, name: str, arguments: Words, site: CheckSite, position: int, operands: int, option: str
    ) -> None:
        """The other reading of a word after an option that is not known: it belongs to the option."""
        try:
            self._wrapped(name, arguments, site, position + 1, operands)
        except TemplateProblem as problem:
            text = f"{problem.problem}, if {option} of {name} takes a word"
            raise TemplateProblem(text, line=problem.line, fix="put -- before the program") from None

    def _assigned(self, word: Word, start: str, site: CheckSite) -> CheckSite:
        variable = start.partition("=")[0]
        self.refuse_variable(variable, word, word.taint)
        return replace(site, environment=variable) if word.taint else site

    def refuse_variable(self, variable: str, word: Word, taint: str) -> None:
        if any(fnmatchcase(variable, pattern) for pattern in evaluators.VARIABLES):
            self.refuse(word, taint, f"would set {variable}, which chooses what runs", "set it to a fixed value")

    def _split_string(self, word: Word, behind: Words, site: CheckSite) -> None:
        spelled = re.sub(r"^(?:-\w*?S|--split-string=?)\s*", "", word.text or "")
        self.refuse(word, word.taint, "would be split into a command by env", ENUM)
        if not spelled and behind:
            word = behind[0]
            spelled = word.text or ""
            behind = behind[1:]
            self.refuse(word, word.taint, "would be split into a command by env", ENUM)
        inner = [*(Word(word.node, (each,)) for each in spelled.split()), *behind]
        if inner:
            self._run(inner, site)

    def _xargs(self, options: Words, inner: Words, site: CheckSite) -> None:
        """What xargs reads becomes arguments of the program: at its end, or in place of the placeholder."""
        read_from = (word.taint or self.file_taint(word) for word in options)
        fed = site.fed or next(filter(None, read_from), "")
        if not fed:
            if inner:
                self._run(inner, site)
            return
        placeholder = _placeholder([word.text or "" for word in options])
        read = Unknown("{}" if placeholder else "xargs", f"what xargs reads ({fed})")
        words = [_with_placeholder(word, placeholder, read) for word in inner] if placeholder else [*inner]
        if not placeholder:
            words.append(Word(site.node, (read,)))
        if inner:
            self._run(words, replace(site, fed=""))

    def _shell(self, arguments: Words, site: CheckSite) -> None:
        """`sh -c 'code' name value…`: the code is inspected, with the words after it."""
        why = "would be run by a shell as code"
        position = 0
        found = reads_input = False
        while position < len(arguments):
            word = arguments[position]
            self.refuse_code(word, why, _AFTER_CODE)
            start = word.text or word.start
            if not start.startswith(("-", "+")) or start == "-":
                break
            found = found or re.fullmatch(r"-\w*c\w*|--command", start) is not None
            reads_input = reads_input or (re.fullmatch(r"-\w*s\w*", start) is not None)
            position += 1
            if start in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
                for value in arguments[position : position + 1]:
                    self.refuse_code(value, why, _AFTER_CODE)
                position += 1
        rest = arguments[position:]
        if found:
            self._code(rest, site, why)
        elif reads_input or not rest or STANDARD_INPUT.fullmatch(rest[0].text or ""):
            place = rest[0] if rest else Word(site.node, ())
            self.refuse(place, site.fed, "would reach a shell as code, through its input", _AFTER_CODE)
            taint = first_taint(rest) or site.environment or self._flow.tainted_environment
            taint = taint or min(self._flow.tainted_files, default="")
            self.refuse(place, taint, "would reach code that a shell reads from its input", _AFTER_CODE)

    def _code(self, rest: Words, site: CheckSite, why: str) -> None:
        if not rest:
            return
        code, behind = rest[0], rest[1:]
        self.refuse_code(code, why, _AFTER_CODE)
        if any(isinstance(part, Unknown) and part.is_path for part in code.parts):
            self.refuse(code, "{}", "is pasted into code that a shell runs", _AFTER_CODE.replace("{{…}}", "{}"))
        taint = first_taint(behind) or site.fed or site.environment or self._flow.tainted_environment
        if not taint and self._flow.tainted_files:
            taint = "a file written from a value"
        directories = self._flow.names & DIRECTORIES
        taint = taint or min(directories, default="")
        if not taint:
            return
        if code.is_whole_value:
            self.refuse(
                code, taint, f"would reach code that is not fixed: {text_of(code.node)}", "write the code there"
            )
        names = {site.environment, *directories, *self.environment()} - {""}
        if behind and behind[0].taint:
            names.add("0")
        self._nested(code.code, code.node, site, frozenset(names))

    def environment(self) -> set[str]:
        flow = self._flow
        return set(flow.names) if flow.tainted_environment else set()

    def _same_shell(self, name: str, arguments: Words, site: CheckSite) -> None:
        for word in arguments:
            self.refuse_code(word, f"would be evaluated by {name!r}", "do without it, or use an `enum`")
        code = arguments[:1] if name == "trap" else arguments
        text = " ".join(word.code for word in code)
        if text and text not in ("-", "-l", "-p", "--"):
            self._nested(text, arguments[0].node, site, frozenset(self._flow.names))

    def _builtin(self, name: str, arguments: Words, site: CheckSite) -> None:
        if name == "set" and arguments and arguments[0].text == "--":
            return
        fix = "do without it, or use an `enum`"
        if name in ("mapfile", "readarray") and any(re.match(r"-\w*C", word.text or word.start) for word in arguments):
            self.refuse(arguments[0], "what is read", f"would reach the command behind -C of {name}", "use a loop")
        evaluates = name == "let" or (name in DECLARES and bool({"i", "n"} & set(self._flow.flags(site.node))))
        for word in arguments:
            if name in ("source", "."):
                self.refuse_code(word, f"would be evaluated by {name!r}", fix)
                if STANDARD_INPUT.fullmatch(word.text or ""):
                    self.refuse(word, site.fed, f"would be evaluated by {name!r}, through its input", fix)
                break
            raw = text_of(word.node)
            named = self._flow.mentions(raw if evaluates else "".join(re.findall(r"\[.*", raw)))
            self.refuse(word, word.taint or named, f"would be evaluated by {name!r}", fix)
        if name == "coproc" and arguments:
            self._run(arguments, replace(site, fed=site.fed or "what is written to a coprocess"))

    def _joining(self, name: str, arguments: Words, site: CheckSite) -> None:
        for word in arguments:
            self.refuse_code(word, f"would be code for {name}", "do without it, or use an `enum`")
        operands = [word for word in arguments if not (word.text or "").startswith("-")]
        sends = name in ("socat", "mutt", "fzf", "sk", "dmenu", "rofi") or (name == "ssh" and len(operands) > 1)
        if not sends:
            place = arguments[0] if arguments else Word(site.node, ())
            self.refuse(place, site.fed, f"would reach {name} as code, through its input", ENUM)
        if site.fed or site.environment or self._flow.tainted_environment:
            joined = " ".join(word.code for word in operands[1:] or operands)
            if joined and name in ("ssh", "su", "watch", "script", "parallel"):
                self._nested(joined, arguments[0].node, site, frozenset(self.environment()))

    def _ordinary(self, name: str, arguments: Words, site: CheckSite, *, choosing: bool) -> None:
        if name == "find":
            arguments = self._find(arguments, site)
        runner = evaluators.RUNNERS.get(name)
        if runner is not None:
            self._options.check(name, runner, arguments, site)
        elif name not in evaluators.DATA:
            self._options.check_unlisted(name, arguments)
        if name in evaluators.DATA or name == "find" or not choosing:
            return
        if name in evaluators.LAUNCHERS:
            self._launched(name, arguments, site)
        elif name in _CONTAINERS:
            self._contained(arguments, site)
        for index, word in enumerate(arguments):
            if word.text is not None and plain_name(word.text) in _RECOGNISED_ANYWHERE and (index or "/" not in name):
                self._run(arguments[index:], site, choosing=False)

    def _contained(self, arguments: Words, site: CheckSite) -> None:
        """`docker exec container program`, `docker run image program`. A word after an option may be the option's."""
        texts = [word.text or word.start for word in arguments]
        at = next((index for index, text in enumerate(texts) if text in _RUN_IN_CONTAINER), len(texts))
        if any(text.startswith("--entrypoint") for text in texts):
            return
        certain = 0
        before = ""
        for index in range(at + 1, len(texts)):
            word = arguments[index]
            text = texts[index]
            if text.startswith("-"):
                before = text
                continue
            if certain == 1:
                self.refuse(word, word.taint, "would choose the program that runs", _ENTRYPOINT)
                if plain_name(text) in evaluators.WRAPPERS:
                    self._run(arguments[index:], site)
            plain = not before or "=" in before or before in evaluators.RUNNERS["docker"].flags or before == "--"
            certain += plain
            before = ""

    def _launched(self, name: str, arguments: Words, site: CheckSite) -> None:
        """The program after `run` or `exec`; `npm run` names a script of the package instead."""
        starts = ("exec", "x", "dlx") if name in ("npm", "pnpm", "yarn") else ("exec", "run", "tool")
        at = next((index for index, word in enumerate(arguments) if word.text in starts), len(arguments))
        inner = list(arguments[at + 1 :])
        while inner and (inner[0].text or "").startswith("-"):
            inner = inner[1:]
        if inner:
            self._run(inner, site)

    def _find(self, arguments: Words, site: CheckSite) -> Words:
        """Returns find's own arguments, without those of programs that it runs."""
        spelled = [word.text for word in arguments]
        index = next((at for at, word in enumerate(spelled) if word in _FIND_EXEC), None)
        if index is None:
            return arguments
        end = next((at for at in range(index, len(spelled)) if spelled[at] in (";", "+")), len(spelled))
        chosen = first_taint(arguments)
        if not chosen and self._flow.tainted_files:
            chosen = "a file written from a value"
        found = Unknown("{}", chosen and f"what find finds ({chosen})", is_path=True)
        inner = [_with_placeholder(word, "{}", found) for word in arguments[index + 1 : end]]
        for before, word in zip([None, *inner], inner, strict=False):
            if word.leading is not None and word.leading.hole is not None:
                ends = (";", "+") if before is not None and before.parts == (found,) else (";",)
                self.begin(word, ends, "could end what find runs")
        for word in arguments[index + 1 : end]:
            for part in word.parts:
                if not isinstance(part, str) and part.hole is not None:
                    self._begin(Word(word.node, (part,)), ("{}",))  # find replaces it anywhere in a word
        if inner:
            self._run(inner, site)
        return [*arguments[:index], *self._find(arguments[end:][1:], site)]


def _placeholder(options: Sequence[str]) -> str:
    for index, option in enumerate(options):
        if option in ("-i", "--replace"):
            return "{}"
        if option == "-I":
            return options[index + 1] if index + 1 < len(options) else ""
        if option.startswith(("-I", "-i")):
            return option[2:]
        if option.startswith("--replace="):
            return option.partition("=")[2]
    return ""


def _with_placeholder(word: Word, placeholder: str, read: Unknown) -> Word:
    parts: list[Part] = []
    for part in word.parts:
        if not isinstance(part, str):
            parts.append(part)
            continue
        for index, text in enumerate(part.split(placeholder)):
            parts += [read] if index else []
            parts += [text] if text else []
    return Word(word.node, tuple(parts))
