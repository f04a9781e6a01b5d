"""SQL check: values in the statements of psql, sqlite3, duckdb and mysql.

A value is a literal that a filter has made, or the whole statement of a program that cannot run others; nothing else.
"""

import re
from collections.abc import Sequence

from toolreeve.core import evaluators
from toolreeve.scripted.checks.check_site import Checker, CheckSite
from toolreeve.scripted.checks.data_flow import is_input
from toolreeve.scripted.checks.literals import sql_problem
from toolreeve.scripted.words import Node, Part, Word, text_of, walk

Words = Sequence[Word]
_ENUM = "give the parameter an `enum`, or write the word yourself"
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


class SqlCheck:
    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def _refuse(self, word: Word, taint: str, why: str, fix: str) -> None:
        self._checker.refuse(word, taint, why, fix)

    def check(self, name: str, arguments: Words, site: CheckSite) -> None:
        """Raises TemplateProblem."""
        kind = {"sqlite": "sqlite3", "mariadb": "mysql"}.get(name, name)
        data = _SQL_DATA.get(kind, "").split()
        code = _SQL_CODE[kind]
        operands: list[Word] = []
        before = ""
        has_statement = False
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
        """Returns whether it is a statement."""
        if start.startswith("-"):
            option, equals, _ = start.partition("=")
            if equals and option in _SQL_CODE[kind]:
                self._statement(kind, Word(word.node, _option_value(word)), arguments)
                return True
            if equals and option in ("--set", "--variable") and kind == "psql":
                self._variable(word, start.partition("=")[2])
                return False
            known = _SQL_DATA.get(kind, "").split()
            if not (equals and option in known) and not (start[:2] in known and kind != "sqlite3"):
                self._refuse(word, word.taint, f"is part of an option of {kind}", _ENUM)
            return kind != "sqlite3" and start[:2] in ("-c", "-f", "-e")
        if before.startswith("-") and before not in _SQL_FLAGS[kind].split() and "=" not in before:
            self._checker.refuse_code(word, f"follows {before} of {kind}, which is not known to take plain text", _ENUM)
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
            self._refuse(word, word.taint, "would set a variable of psql", "give it a name of your own")
        pasted = re.search(rf"(?<!:):{re.escape(name)}\b", text_of(self._checker.flow.root))
        fix = f"write :'{name}' in the statement"
        self._refuse(word, word.taint if pasted else "", f"would be pasted into a statement as :{name}", fix)

    def _statement(self, kind: str, word: Word, arguments: Words) -> None:
        """A statement that is entirely the caller's is allowed if the program cannot run others."""
        for name in re.findall(r"[^\s'\"]+", word.text or ""):
            self._checker.refuse_code(Word(word.node, (name,)), f"would be read by {kind}", _ENUM)
        if not word.taint:
            return
        if word.is_whole_value and word.leading is not None and not (word.leading.hole and word.leading.hole.literal):
            if kind == "psql":
                self._checker.begin(word, ("\\",), "could be a command of psql")
                return
            if kind == "sqlite3":
                safe = any(each.text in ("-safe", "--safe") for each in arguments)
                self._refuse(word, "" if safe else word.taint, "would be statements that can run programs", "add -safe")
                self._checker.begin(word, (".", "-"), "could be a command of sqlite3")
                return
        if found := _SQL_RUNS.search(word.shape):
            self._refuse(word, word.taint, f"would reach a statement with {found[0]!r}, which may run it", _ENUM)
        if word.start.startswith((".", "\\")):
            self._refuse(word, word.taint, f"would be part of a command of {kind}", _ENUM)
        problem, fix = sql_problem(word.parts, evaluators.SQL_DIALECTS[kind])
        self._refuse(word, word.taint if problem else "", problem, fix)

    def _input(self, kind: str, arguments: Words, site: CheckSite) -> None:
        """Statements in a heredoc may contain literals; anything else in the input must not be the caller's."""
        place = arguments[0] if arguments else Word(site.node, ())
        body = _own_input(site)
        if body is None:
            fix = "write the statement there, with {{…|sql}} in it"
            self._refuse(place, site.fed, f"would reach {kind} as code, through its input", fix)
            return
        word = self._checker.flow.word(body)
        if re.search(r"(?m)^\s*[.\\]", word.shape) or _SQL_RUNS.search(word.shape):
            self._refuse(place, word.taint, f"is beside commands of {kind}", "write SQL only")
        problem, fix = sql_problem(word.parts, evaluators.SQL_DIALECTS[kind])
        self._refuse(place, word.taint if problem else "", problem, fix)


def _own_input(site: CheckSite) -> Node | None:
    """The text that the command itself gets by `<<` or `<<<`."""
    own = [each for each in (*site.node.children, *site.statement.children) if each.type.endswith("_redirect")]
    inputs = [each for each in own if is_input(each)]
    if len(inputs) != 1:
        return None
    if inputs[0].type == "herestring_redirect":
        return inputs[0].children[-1]
    if not re.match(r"\d*<\s*<\(: ", text_of(inputs[0])):
        return None
    return next((node for node in walk(inputs[0]) if node.type == "string"), None)


def _option_value(word: Word) -> tuple[Part, ...]:
    """The parts of an option's value: `--command=…`."""
    first = word.start.partition("=")[2]
    return (*([first] if first else []), *word.parts[1:])
