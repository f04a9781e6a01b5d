"""Language check: values in Python, Perl, awk, sed and jq programs.

A value is never part of such a program, unless a filter has made a literal of it. A program in the script that
evaluates data gets no value at all.
"""

import re
from collections.abc import Sequence

from toolreeve.core import evaluators
from toolreeve.core.evaluators import Interpreter
from toolreeve.scripted.checks.check_site import Checker, CheckSite
from toolreeve.scripted.checks.literals import jq_problem
from toolreeve.scripted.checks.sql import SqlCheck
from toolreeve.scripted.words import Word, first_taint, text_of

Words = Sequence[Word]
STANDARD_INPUT = re.compile(r"-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")
_ENUM = "give the parameter an `enum`, or write the word yourself"
_ARGUMENT = "pass it as an argument after the code, and read it there"
_AWK_REGEX = re.compile(r"(?<=[(,;{}!~&|\s])/(?:[^/\\\n]|\\.)+/|^/(?:[^/\\\n]|\\.)+/")
_AWK_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_AWK_RUNS = re.compile(r"\bsystem\b|(?<!\|)\|(?!\|)|@")
_SED_RUNS = re.compile(
    r"(?:^|[;{}\n\d$!])\s*e(?:\s|$|;)|/e(?:\s|$|;)|[^\w\s\\][gpiImM0-9]*e[gpiImM0-9w]*\s*(?:$|[;}\n])"
)


class LanguageCheck:
    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._statements = SqlCheck(checker)

    def check(self, name: str, arguments: Words, site: CheckSite) -> bool:
        """False if the program is none of these. Raises TemplateProblem."""
        if (interpreter := evaluators.INTERPRETERS.get(name)) is not None:
            self._interpreter(name, interpreter, arguments, site)
        elif name in evaluators.AWKS:
            self._awk(name, arguments, site)
        elif name in evaluators.SEDS:
            self._sed(name, arguments, site)
        elif name in evaluators.JQS:
            self._jq(name, arguments)
        elif name in evaluators.SQL_DIALECTS:
            self._statements.check(name, arguments, site)
        else:
            return False
        return True

    def _refuse(self, word: Word, taint: str, why: str, fix: str) -> None:
        self._checker.refuse(word, taint, why, fix)

    def _ambient(self) -> str:
        """What any program can get at: an exported variable, or a file that it may read by itself."""
        return self._checker.flow.tainted_environment or self._file()

    def _file(self) -> str:
        return "a file written from a value" if self._checker.flow.tainted_files else ""

    def _interpreter(self, name: str, interpreter: Interpreter, arguments: Words, site: CheckSite) -> None:
        why = f"would be code for {name}"
        codes: list[str] = []
        position = 0
        has_code = False
        while position < len(arguments):
            word = arguments[position]
            start = word.text if word.text is not None else word.start
            if not start.startswith("-") or start in ("-", "--"):
                break
            self._checker.refuse_code(word, why, _ARGUMENT)
            codes.append(start)
            has_code = has_code or _holds_code(start, interpreter)
            if name == "python" and start == "-m":
                self._module(arguments[position + 1 :], site)
                return
            if _code_follows(start, interpreter):
                for code in arguments[position + 1 : position + 2]:
                    self._checker.refuse_code(code, why, _ARGUMENT)
                    codes.append(code.shape)
                position += 1
            elif start in interpreter.valued:
                for value in arguments[position + 1 : position + 2]:
                    self._checker.refuse_code(value, why, _ENUM)
                position += 1
            position += 1
        self._behind_code(name, interpreter, arguments[position:], site, codes if has_code else [])

    def _module(self, words: Words, site: CheckSite) -> None:
        module = words[0].text if words else None
        evaluates = (module or "").partition(".")[0] in evaluators.MODULES
        for index, word in enumerate(words):
            if index == 0 or evaluates:
                taint = word.taint or (site.fed if evaluates else "")
                self._refuse(word, taint, f"would be evaluated by python -m {module or ''}".rstrip(), _ENUM)

    def _behind_code(
        self, name: str, interpreter: Interpreter, rest: Words, site: CheckSite, codes: Sequence[str]
    ) -> None:
        script = rest[0] if rest and rest[0].text != "--" else None
        if not codes or name in ("lua", "luajit"):
            if script is not None and not STANDARD_INPUT.fullmatch(script.text or ""):
                self._checker.refuse_code(script, f"would choose the program that {name} runs", _ENUM)
                return
            if not codes:
                place = script or Word(site.node, ())
                self._refuse(place, site.fed, f"would reach {name} as code, through its input", _ARGUMENT)
        given = first_taint(rest)
        if not codes and name not in ("python", "node"):
            place = script or Word(site.node, ())
            self._refuse(place, given, f"would reach code that {name} reads from its input", "put the code behind -e")
        self._data(name, rest, " ".join(codes))
        taint = given or site.fed or site.environment or self._ambient()
        program = " ".join([*codes, text_of(site.statement)]) if taint else ""
        if found := re.search(interpreter.evaluates, program):
            place = rest[0] if rest else Word(site.node, ())
            fix = f"do without {found[0]!r} in it, or put the code into a file of its own"
            self._refuse(place, taint, f"would reach code for {name} that may evaluate it", fix)

    def _data(self, name: str, rest: Words, codes: str) -> None:
        """After the code, most interpreters still look for options; perl opens what it reads by `-n` with a shell."""
        ended = False
        for word in rest:
            if name == "perl" and re.search(r"(?:^|\s)-\w*[np]", codes):
                fix = "let it read its input: perl -ne '…' < \"{{…}}\""
                self._refuse(word, word.taint, "would be opened by perl, which can run it", fix)
            if codes and name != "python" and not ended:
                self._checker.begin(word, ("-",), f"could be an option of {name}")
            ended = ended or word.text == "--"

    def _awk(self, name: str, arguments: Words, site: CheckSite) -> None:
        why = f"would be code for {name}"
        fix = "awk -v x={{…}} '… x …', or ENVIRON"
        programs, operands = self._split(
            arguments,
            valued="-v -F --assign --field-separator",
            loads="-i -l --include --load",
            code="-f -e -E --file --source",
            glued="-v -F",
            why=(why, fix),
        )
        if not programs and operands:
            self._checker.refuse_code(operands[0], why, fix)
            programs = operands[:1]
        self._files(name, operands, ended=any(word.text == "--" for word in arguments))
        text = " ".join(word.shape for word in programs)
        bare = _AWK_TEXT.sub('""', _AWK_REGEX.sub(" ", text))
        from_file = any(re.match(r"-f|--file", word.text or "") for word in arguments)
        if any(STANDARD_INPUT.fullmatch(word.text or "") for word in programs) and from_file:
            self._refuse(programs[0], site.fed, f"would reach {name} as code, through its input", fix)
        taint = first_taint(arguments) or site.fed
        taint = taint or site.environment or self._ambient()
        if _AWK_RUNS.search(bare):
            place = programs[0] if programs else Word(site.node, ())
            self._refuse(
                place, taint, f"would reach a program of {name} that runs commands", "do without system() and |"
            )

    def _sed(self, name: str, arguments: Words, site: CheckSite) -> None:
        why = f"would be code for {name}"
        fix = "use another tool for it, or an `enum`"
        programs, operands = self._split(
            arguments, valued="-l --line-length", code="-e -f --expression --file", glued="", why=(why, fix)
        )
        if not programs and operands:
            self._checker.refuse_code(operands[0], why, fix)
            programs = operands[:1]
            operands = operands[1:]
        self._files(name, operands, ended=any(word.text == "--" for word in arguments))
        if any(STANDARD_INPUT.fullmatch(word.text or "") for word in programs):
            self._refuse(programs[0], site.fed, f"would reach {name} as code, through its input", fix)
        taint = first_taint(operands) or site.fed or self._file()
        if any(_SED_RUNS.search(word.shape) for word in programs):
            self._refuse(programs[0], taint, f"would reach a program of {name} that runs commands", "do without e")

    def _split(
        self, arguments: Words, *, valued: str, code: str, glued: str, why: tuple[str, str], loads: str = ""
    ) -> tuple[list[Word], list[Word]]:
        """The words that an option makes programs, and the operands."""
        programs: list[Word] = []
        operands: list[Word] = []
        follows = ""
        ended = False
        for word in arguments:
            start = word.text if word.text is not None else word.start
            if follows == "code":
                self._checker.refuse_code(word, *why)
                programs.append(word)
                follows = ""
            elif follows == "load":
                self._checker.refuse_code(word, *why)
                follows = ""
            elif follows == "value":
                follows = ""
            elif ended or not start.startswith("-") or start == "-":
                operands.append(word)
            elif start == "--":
                ended = True
            elif start in valued.split():
                follows = "value"
            elif start in loads.split():
                follows = "load"
            elif not (glued and start.startswith(tuple(glued.split()))):
                self._checker.refuse_code(word, *why)
                letters = "".join(option[1] for option in code.split() if not option.startswith("--"))
                if start in code.split() or re.fullmatch(rf"-\w*[{letters}]", start):
                    follows = "code"
                elif re.match("|".join(code.split()), start) and len(start) > 2:
                    programs.append(word)
        return programs, operands

    def _files(self, name: str, operands: Words, *, ended: bool) -> None:
        for word in operands:
            if not ended:
                self._checker.begin(word, ("-",), f"could be an option with which {name} runs programs")

    def _jq(self, name: str, arguments: Words) -> None:
        skip = 0
        seen = ended = False
        for word in arguments:
            start = word.text if word.text is not None else word.start
            if skip:
                skip -= 1
            elif start in ("--arg", "--argjson", "--slurpfile", "--rawfile"):
                skip = 2
            elif start in ("--indent", "-p", "-o", "--input-format", "--output-format", "-I"):
                skip = 1
            elif start in ("--args", "--jsonargs"):
                ended = True
            elif start.startswith("-") and start != "-":
                self._checker.refuse_code(word, f"would be an option of {name}", _ENUM)
                if re.fullmatch(r"-\w*L", start):
                    seen = False
            elif not seen and not (name == "yq" and start in ("e", "eval", "ea", "eval-all")):
                seen = True
                problem, fix = jq_problem(word.parts)
                self._refuse(word, word.taint if problem else "", problem, fix)
                self._checker.begin(word, ("-",), f"could be an option of {name}")
            elif not ended:
                self._checker.begin(word, ("-",), f"could be an option of {name}")


def _code_follows(start: str, interpreter: Interpreter) -> bool:
    return start in interpreter.long or re.fullmatch(rf"-\w*[{interpreter.code}]", start) is not None


def _holds_code(start: str, interpreter: Interpreter) -> bool:
    return _code_follows(start, interpreter) or re.match(rf"-\w*?[{interpreter.code}]", start) is not None
