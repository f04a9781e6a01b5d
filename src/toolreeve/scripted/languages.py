"""Language check: values beside or inside programs in Python, Perl, awk, sed, jq and SQL.

A value is never part of such a program, unless a filter has made a literal of it. A program that is written in the
script and evaluates data gets no value at all.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from toolreeve.core import evaluators
from toolreeve.core.evaluators import Interpreter
from toolreeve.scripted.flow import Flow, is_input
from toolreeve.scripted.literals import jq_problem, sql_problem
from toolreeve.scripted.words import Node, Part, Word, text_of, walk

Words = Sequence[Word]
STANDARD_INPUT = re.compile(r"-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")
_ENUM = "give the parameter an `enum`, or write the word yourself"
_ARGUMENT = "pass it as an argument behind the code, and read it there"
_AWK_REGEX = re.compile(r"(?<=[(,;{}!~&|\s])/(?:[^/\\\n]|\\.)+/|^/(?:[^/\\\n]|\\.)+/")
_AWK_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_AWK_RUNS = re.compile(r"\bsystem\b|(?<!\|)\|(?!\|)|@")
_SED_RUNS = re.compile(
    r"(?:^|[;{}\n\d$!])\s*e(?:\s|$|;)|/e(?:\s|$|;)|[^\w\s\\][gpiImM0-9]*e[gpiImM0-9w]*\s*(?:$|[;}\n])"
)
_SQL_RUNS = re.compile(
    r"(?i)\b(?:load_extension|edit|fts3_tokenizer|program|execute|prepare|sys_exec|sys_eval|xp_cmdshell|install|shell|system)\b"
)
_SQL_DATA = {
    "psql": "-h -d -p -U -F -R -T --host --dbname --port --username --field-separator --record-separator",
    "sqlite3": "-separator -nullvalue -newline -maxsize",
    "mysql": "-h -u -D -P --host --user --database --port --password --default-character-set",
}
_SQL_FLAGS = {
    "psql": "-A -t -q -X -1 -w -W -e -E -b -n -s -S -x -z -0 -At -Atq -qAt -tA -qtA --csv --no-psqlrc "
    "--tuples-only --no-align "
    "--quiet --single-transaction --no-password --expanded --html --no-readline",
    "sqlite3": "-safe -readonly -json -csv -line -list -column -html -header -noheader -batch -bail -quote -markdown "
    "-table "
    "-box -tabs -ascii -echo -stats -nofollow -cmd --safe --readonly --json --csv --batch",
    "duckdb": "-readonly -json -csv -line -list -column -html -header -noheader -batch -bail -markdown -table -box",
    "mysql": "-N -B -s -t -r -H -X -A -v -p -Ns -sN -BN -NB --batch --silent --skip-column-names --table --raw",
}
_SQL_CODE = {
    "psql": ("-c", "--command"),
    "sqlite3": ("-cmd",),
    "duckdb": ("-c", "-s", "-cmd"),
    "mysql": ("-e", "--execute"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a command finds beside its words: the caller's text in its input (`fed`) or in its environment."""

    node: Node
    fed: str = ""
    environment: str = ""

    @property
    def statement(self) -> Node:
        """The command with its redirections."""
        around = self.node.parent
        return around if around is not None and around.type == "redirected_statement" else self.node


class Checker(Protocol):
    @property
    def flow(self) -> Flow: ...
    def refuse(self, word: Word, dirt: str, why: str, fix: str = "") -> None: ...
    def refuse_code(self, word: Word, why: str, fix: str) -> None: ...
    def begin(self, word: Word, beginnings: tuple[str, ...], what: str) -> None: ...


class Languages:
    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def check(self, name: str, arguments: Words, site: Site) -> bool:
        """False where the program is none of these. Raises TemplateProblem."""
        if (interpreter := evaluators.INTERPRETERS.get(name)) is not None:
            self._interpreter(name, interpreter, arguments, site)
        elif name in evaluators.AWKS:
            self._awk(name, arguments, site)
        elif name in evaluators.SEDS:
            self._sed(name, arguments, site)
        elif name in evaluators.JQS:
            self._jq(name, arguments)
        elif name in evaluators.SQL_DIALECTS:
            self._sql(name, arguments, site)
        else:
            return False
        return True

    def _refuse(self, word: Word, dirt: str, why: str, fix: str) -> None:
        self._checker.refuse(word, dirt, why, fix)

    def _interpreter(self, name: str, interpreter: Interpreter, arguments: Words, site: Site) -> None:
        why = f"would be code for {name}"
        codes: list[str] = []
        position, has_code = 0, False
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

    def _module(self, words: Words, site: Site) -> None:
        module = words[0].text if words else None
        evaluates = (module or "").partition(".")[0] in evaluators.MODULES
        for index, word in enumerate(words):
            if index == 0 or evaluates:
                dirt = word.dirt or (site.fed if evaluates else "")
                self._refuse(word, dirt, f"would be evaluated by python -m {module or ''}".rstrip(), _ENUM)

    def _behind_code(self, name: str, interpreter: Interpreter, rest: Words, site: Site, codes: Sequence[str]) -> None:
        script = rest[0] if rest and rest[0].text != "--" else None
        if not codes or name in ("lua", "luajit"):
            if script is not None and not STANDARD_INPUT.fullmatch(script.text or ""):
                self._checker.refuse_code(script, f"would choose the program that {name} runs", _ENUM)
                return
            if not codes:
                place = script or Word(site.node, ())
                self._refuse(place, site.fed, f"would reach {name} as code, through its input", _ARGUMENT)
        given = next((word.dirt for word in rest if word.dirt), "")
        if not codes and name not in ("python", "node"):
            place = script or Word(site.node, ())
            self._refuse(place, given, f"would reach code that {name} reads from its input", "put the code behind -e")
        self._data(name, rest, " ".join(codes))
        dirt = given or site.fed or site.environment or self._checker.flow.dirty_environment
        program = " ".join([*codes, text_of(site.statement)]) if dirt else ""
        if found := re.search(interpreter.evaluates, program):
            place = rest[0] if rest else Word(site.node, ())
            fix = f"do without {found[0]!r} in it, or put the code into a file of its own"
            self._refuse(place, dirt, f"would reach code for {name} that may evaluate it", fix)

    def _data(self, name: str, rest: Words, codes: str) -> None:
        """Behind code, most interpreters still look for options; perl opens what it reads by `-n` with a shell."""
        ended = False
        for word in rest:
            if name == "perl" and re.search(r"(?:^|\s)-\w*[np]", codes):
                fix = "let it read its input: perl -ne '…' < \"{{…}}\""
                self._refuse(word, word.dirt, "would be opened by perl, which can run it", fix)
            if codes and name != "python" and not ended:
                self._checker.begin(word, ("-",), f"could be an option of {name}")
            ended = ended or word.text == "--"

    def _awk(self, name: str, arguments: Words, site: Site) -> None:
        why, fix = f"would be code for {name}", "awk -v x={{…}} '… x …', or ENVIRON"
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
        dirt = next((word.dirt for word in arguments if word.dirt), "") or site.fed
        dirt = dirt or site.environment or self._checker.flow.dirty_environment
        if _AWK_RUNS.search(bare):
            place = programs[0] if programs else Word(site.node, ())
            self._refuse(
                place, dirt, f"would reach a program of {name} that runs commands", "do without system() and |"
            )

    def _sed(self, name: str, arguments: Words, site: Site) -> None:
        why, fix = f"would be code for {name}", "use another tool for it, or an `enum`"
        programs, operands = self._split(
            arguments, valued="-l --line-length", code="-e -f --expression --file", glued="", why=(why, fix)
        )
        if not programs and operands:
            self._checker.refuse_code(operands[0], why, fix)
            programs, operands = operands[:1], operands[1:]
        self._files(name, operands, ended=any(word.text == "--" for word in arguments))
        if any(STANDARD_INPUT.fullmatch(word.text or "") for word in programs):
            self._refuse(programs[0], site.fed, f"would reach {name} as code, through its input", fix)
        dirt = next((word.dirt for word in operands if word.dirt), "") or site.fed
        if any(_SED_RUNS.search(word.shape) for word in programs):
            self._refuse(programs[0], dirt, f"would reach a program of {name} that runs commands", "do without e")

    def _split(
        self, arguments: Words, *, valued: str, code: str, glued: str, why: tuple[str, str], loads: str = ""
    ) -> tuple[list[Word], list[Word]]:
        """The words that are programs by an option, and the operands."""
        programs: list[Word] = []
        operands: list[Word] = []
        follows, ended = "", False
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
        skip, seen, ended = 0, False, False
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
                if re.fullmatch(r"-\w*[fL]|--from-file", start):
                    skip, seen = (0, False) if start.endswith("L") else (0, seen)
            elif not seen and not (name == "yq" and start in ("e", "eval", "ea", "eval-all")):
                seen = True
                problem, fix = jq_problem(word.parts)
                self._refuse(word, word.dirt if problem else "", problem, fix)
                self._checker.begin(word, ("-",), f"could be an option of {name}")
            elif not ended:
                self._checker.begin(word, ("-",), f"could be an option of {name}")

    def _sql(self, name: str, arguments: Words, site: Site) -> None:
        kind = {"sqlite": "sqlite3", "mariadb": "mysql"}.get(name, name)
        data, code = _SQL_DATA.get(kind, "").split(), _SQL_CODE[kind]
        operands: list[Word] = []
        before, has_statement = "", False
        for word in arguments:
            start = word.text if word.text is not None else word.start
            if before in code:
                self._statement(kind, word, arguments)
                has_statement = True
            elif before in ("-v", "--set", "--variable") and kind == "psql":
                self._variable(word, start)
            elif before in ("-f", "--file", "-init", "--init-command"):
                self._checker.refuse_code(word, f"would choose the statements that {name} runs", _ENUM)
                has_statement = True
            elif before not in data or start.startswith("-"):
                has_statement = self._sql_word(kind, word, start, before, operands, arguments) or has_statement
            before = start if word.text is not None else ""
        takes_operand = kind in ("sqlite3", "duckdb") and len(operands) > 1
        if site.fed and not has_statement and not takes_operand:
            self._input(kind, arguments, site)

    def _sql_word(self, kind: str, word: Word, start: str, before: str, operands: list[Word], arguments: Words) -> bool:
        """True where it is a statement."""
        if start.startswith("-"):
            option, equals, _ = start.partition("=")
            if equals and option in _SQL_CODE[kind]:
                self._statement(kind, Word(word.node, _behind_equals(word)), arguments)
                return True
            if equals and option in ("--set", "--variable") and kind == "psql":
                self._variable(word, start.partition("=")[2])
                return False
            known = _SQL_DATA.get(kind, "").split()
            if not (equals and option in known) and not (start[:2] in known and kind != "sqlite3"):
                self._refuse(word, word.dirt, f"is part of an option of {kind}", _ENUM)
            return kind != "sqlite3" and start[:2] in ("-c", "-f", "-e")
        if before.startswith("-") and before not in _SQL_FLAGS[kind].split() and "=" not in before:
            self._checker.refuse_code(
                word, f"stands behind {before} of {kind}, which is not known to take plain text", _ENUM
            )
            return False
        operands.append(word)
        if kind in ("sqlite3", "duckdb") and len(operands) > 1:
            self._statement(kind, word, arguments)
            return True
        beginnings = ("-", ".") if kind == "sqlite3" else ("-", "\\")
        self._checker.begin(word, beginnings, f"could be an option of {kind}")
        return False

    def _variable(self, word: Word, start: str) -> None:
        name = start.partition("=")[0]
        if not re.fullmatch(r"\w+", name) or name.isupper():
            self._refuse(word, word.dirt, "would set a variable of psql", "give it a name of your own")
        pasted = re.search(rf"(?<!:):{re.escape(name)}\b", text_of(self._checker.flow.root))
        fix = f"write :'{name}' in the statement"
        self._refuse(word, word.dirt if pasted else "", f"would be pasted into a statement as :{name}", fix)

    def _statement(self, kind: str, word: Word, arguments: Words) -> None:
        """One that is wholly the caller's is what the tool is for, if the program cannot run others."""
        for name in re.findall(r"[^\s'\"]+", word.text or ""):
            self._checker.refuse_code(Word(word.node, (name,)), f"would be read by {kind}", _ENUM)
        if not word.dirt:
            return
        if word.is_whole_value and word.leading is not None and not (word.leading.hole and word.leading.hole.literal):
            if kind == "psql":
                self._checker.begin(word, ("\\",), "could be a command of psql")
                return
            if kind == "sqlite3":
                safe = any(each.text in ("-safe", "--safe") for each in arguments)
                self._refuse(word, "" if safe else word.dirt, "would be statements that can run programs", "add -safe")
                self._checker.begin(word, (".", "-"), "could be a command of sqlite3")
                return
        if found := _SQL_RUNS.search(word.shape):
            self._refuse(word, word.dirt, f"would reach a statement with {found[0]!r}, which may run it", _ENUM)
        if word.start.startswith((".", "\\")):
            self._refuse(word, word.dirt, f"would be part of a command of {kind}", _ENUM)
        problem, fix = sql_problem(word.parts, evaluators.SQL_DIALECTS[kind])
        self._refuse(word, word.dirt if problem else "", problem, fix)

    def _input(self, kind: str, arguments: Words, site: Site) -> None:
        """Statements in a heredoc may hold literals; anything else in the input may not be the caller's."""
        place = arguments[0] if arguments else Word(site.node, ())
        body = _own_input(site)
        if body is None:
            fix = "write the statement there, with {{…|sql}} in it"
            self._refuse(place, site.fed, f"would reach {kind} as code, through its input", fix)
            return
        word = self._checker.flow.word(body)
        if re.search(r"(?m)^\s*[.\\]", word.shape) or _SQL_RUNS.search(word.shape):
            self._refuse(place, word.dirt, f"stands beside commands of {kind}", "write SQL only")
        problem, fix = sql_problem(word.parts, evaluators.SQL_DIALECTS[kind])
        self._refuse(place, word.dirt if problem else "", problem, fix)


def _own_input(site: Site) -> Node | None:
    """The text that the command itself is given by `<<` or `<<<`."""
    own = [each for each in (*site.node.children, *site.statement.children) if each.type.endswith("_redirect")]
    inputs = [each for each in own if is_input(each)]
    if len(inputs) != 1:
        return None
    if inputs[0].type == "herestring_redirect":
        return inputs[0].children[-1]
    if not re.match(r"\d*<\s*<\(: ", text_of(inputs[0])):
        return None
    return next((node for node in walk(inputs[0]) if node.type == "string"), None)


def _behind_equals(word: Word) -> tuple[Part, ...]:
    """The parts of an option's value: `--command=…`."""
    first = word.start.partition("=")[2]
    return (*([first] if first else []), *word.parts[1:])


def _code_follows(start: str, interpreter: Interpreter) -> bool:
    return start in interpreter.long or re.fullmatch(rf"-\w*[{interpreter.code}]", start) is not None


def _holds_code(start: str, interpreter: Interpreter) -> bool:
    return _code_follows(start, interpreter) or re.match(rf"-\w*?[{interpreter.code}]", start) is not None
