"""Handler of database clients: SQL statements in arguments.

Statements are known as far as they stay within the database.
"""

import re

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind
from toolreeve.policy.shell.interpret.expansion import Word, several, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.parse.size import LONGEST_PROGRAM
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, RunsCode, read
from toolreeve.policy.shell.programs.handlers.sql_functions import calls_only_pure
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags, conclude

_READING_SQL = re.compile(r"\s*(?:select|show|describe|desc|explain(?!\s+analy)|values|table)\b", re.IGNORECASE)
_CHANGING_SQL = re.compile(
    r"\b(?:insert|update|delete|drop|create|alter|truncate|grant|revoke|into|copy|call|execute|merge|replace|vacuum|attach|"
    r"detach|pragma|load_extension|writefile|edit|pg_\w*file\w*|lo_\w+|load_file|outfile|dumpfile|export|import|install|"
    r"load|set|reindex|analyze|lock|do|pg_terminate\w*|pg_cancel\w*|pg_reload\w*|nextval|setval|dblink\w*|read_\w+|readfile|fsdir|zipfile|sqlite_dbpage|getenv|glob|"
    r"xp_\w+|sp_\w+|openrowset|openquery|bulk|exec|unload|for\s+update)\b",
    re.IGNORECASE,
)
_PLAIN_CHANGE = re.compile(
    r"\s*(?:insert\s+into|replace\s+into|update|delete\s+from|truncate|(?:create|drop|alter)\s+(?:temp(?:orary)?\s+|unique\s+)?"
    r"(?:table|index|view|sequence)|begin|commit|rollback)\b",
    re.IGNORECASE,
)
_REACHING_OUT = re.compile(
    r"\b(?:copy|program|call|execute|exec|do|attach|detach|pragma|load\w*|writefile|readfile|fsdir|zipfile|edit|pg_\w+|lo_\w+|outfile|dumpfile|"
    r"export|import|install|dblink\w*|read_\w+|getenv|glob|xp_\w+|sp_\w+|open\w+|bulk|unload|language|function|extension|"
    r"trigger|server|system|source|foreign|tablespace|directory)\b|[\\`]|^\s*\.|\n\s*\.",
    re.IGNORECASE,
)


def query(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Statements must be literal text; a client that runs programs from inside a database must be in its safe mode."""
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    operands = arguments.operands
    asking = spec.data.get("asks", "").split()
    if arguments.flags and not operands and all(flag in asking for flag, _ in arguments.flags):
        return conclude(spec, arguments, site)
    skip = spec.data.get("skip", len(operands))
    if "database" in spec.operands and operands and _may_be_another(operands[0]):
        raise NotKnown(f"`{shown(operands[0])}`, which may be another database or several words")
    for role, operand in zip(spec.operands, operands[:skip], strict=False):
        apply_role(role.rstrip("*"), operand, site)
    _statements(spec, arguments, operands[:skip], operands[skip:], site)
    # Flags are obeyed in order: what stands before this one is not restricted by it.
    if "-safe" in spec.flags and words[:1] != ["-safe"]:
        raise RunsCode("runs what the database's views say (put -safe first)")
    return conclude(spec, arguments, site)


def _may_be_another(database: Word) -> bool:
    """Whether the name may be several words, or is an address of another file."""
    return several(database) or (isinstance(database, str) and database.lower().startswith("file:"))


def _statements(
    spec: Program, arguments: Arguments, databases: list[Word], more: list[Word], site: CommandSite
) -> None:
    if spec.name == "mysql" and any("\n" in shown(word) for word in (*more, *(v for _, v in arguments.flags if v))):
        raise NotKnown("a statement of several lines, any of which may be a command of the client")
    given = [value for flag, value in arguments.flags if flag in spec.data["statement"].split()] + more
    if not given and not arguments.has("-safe"):
        raise NotKnown(f"`{spec.name}` waits for statements")
    if sum(len(statement) for statement in given if isinstance(statement, str)) > LONGEST_PROGRAM:
        raise NotKnown(f"statements of more than {LONGEST_PROGRAM:,} characters")
    if given and all(isinstance(statement, str) and reads_only(statement) for statement in given):
        return
    if not all(isinstance(statement, str) and stays_inside(statement) for statement in given):
        raise NotKnown("a statement that may do more than change data")
    site.findings.alarm(DangerLevel.HIGH, "changes data" if given else "takes statements from its input")
    for database in databases if "database" in spec.operands else ():
        site.touch(EffectKind.WRITE, database)


def stays_inside(text: str) -> bool:
    """Whether SQL text changes tables and nothing else."""
    statements = [statement for statement in text.split(";") if statement.strip()]
    inside = (_PLAIN_CHANGE.match(statement) or reads_only(statement) for statement in statements)
    return all(inside) and not _REACHING_OUT.search(text)


def reads_only(statement: str) -> bool:
    """Whether SQL text is one statement that only reads. Quoted text counts too: rather ask than miss."""
    if re.match(r"\s*\\(?:d[a-zA-Z+]*|l\+?|conninfo|dt\+?|z)(?:\s+[\w.*\"]+)?\s*$", statement):
        return True
    if re.match(r"\s*\.(?:tables|schema|databases|indexes|indices|show|help|dbinfo)(?:\s+[\w.]+)?\s*$", statement):
        return True
    if "\\" in statement or statement.lstrip().startswith(".") or "\n." in statement:
        return False
    statement = statement.rstrip("; \n\t")
    if re.search(r"\bfrom\s*'", statement, re.IGNORECASE):
        return False
    if ";" in statement or not _READING_SQL.match(statement) or _CHANGING_SQL.search(statement):
        return False
    return calls_only_pure(statement)
