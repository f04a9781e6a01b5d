"""Validation of program specifications: their fields and examples.

    python -P -m toolreeve.policy.shell.programs.validation

compiles the specifications and fails when an example does not hold.

`matches` are commands that must be known; `not_matches` are commands that must need approval.
"""

import re
import sys
from typing import Any

from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ConfigError
from toolreeve.policy.shell.programs import compile as programs
from toolreeve.policy.shell.programs.spec import FIELDS, ROLES, Program


def check_all() -> None:
    """Raises ConfigError naming the file and the program whose specification is not valid."""
    from toolreeve.policy.shell.programs.handlers import HANDLERS

    for family, specified in programs.families().items():
        for name, data in specified.items():
            check(f"{family}.yaml", name, data, frozenset(HANDLERS))


def check(source: str, name: str, data: Any, handlers: frozenset[str]) -> None:
    if not isinstance(data, dict):
        raise ConfigError("not a mapping", source=source, key=name)
    for field, value in data.items():
        if field not in FIELDS:
            raise ConfigError(f"unknown field {field!r}", source=source, key=name)
        if field in ("flags", "maybe", "operands") or field in ROLES:
            _check_words(source, name, field, value)
    if data.get("judge", next(iter(handlers))) not in handlers:
        raise ConfigError(f"no handler {data['judge']!r}", source=source, key=name)
    for operand in data.get("operands", "").split():
        if operand.rstrip("*?+") not in ROLES:
            raise ConfigError(f"no role {operand!r}", source=source, key=name)
    _check_harmless(source, name, data)
    for sub, inner in (data.get("sub") or {}).items():
        check(source, f"{name} {sub}", inner or {}, handlers)


def _check_harmless(source: str, name: str, data: dict[str, Any]) -> None:
    """A word that may be a flag must count as one wherever that makes a difference."""
    if (harmless := data.get("harmless", False)) not in (True, False, "reads"):
        raise ConfigError(f"harmless must be true or 'reads', not {harmless!r}", source=source, key=name)
    supposed = Program(name, data).supposed
    if harmless == "reads" and not supposed:
        raise ConfigError("harmless: reads needs the flags that read more, as supposed", source=source, key=name)
    prints = "prints" in data or any("prints" in mode for mode in data.get("modes", {}).values())
    if harmless and prints and not set(supposed).intersection(Program(name, data).rewrites):
        raise ConfigError("prints needs a flag that rewrites the output, as supposed", source=source, key=name)


def _check_words(source: str, name: str, field: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ConfigError(f"{field} is not text", source=source, key=name)
    for word in value.split():
        if field != "operands" and not re.match(r"[-+]", word):
            raise ConfigError(f"{word!r} in {field} is not a flag", source=source, key=name)


def examples() -> list[tuple[str, str, bool]]:
    """(program, command, must be known) of every example in the files."""
    return [
        (f"{family}:{name}", command, field == "matches")
        for family, specified in programs.families().items()
        for name, data in specified.items()
        for field in programs.EXAMPLES
        for command in data.get(field, ())
    ]


def broken_examples() -> list[str]:
    """The examples that fail, each with the actual result."""
    from toolreeve.policy.shell.analysis import analyse

    broken = []
    for place, command, known in examples():
        found = analyse(command, cwd="/project", home="/home/me", root="/project")
        if known and not found.known:
            broken.append(f"{place}: {command!r} should be known: {found.reason}")
        if not known and found.danger <= DangerLevel.LOW:
            broken.append(f"{place}: {command!r} should need approval")
    return broken


def main() -> int:
    check_all()
    programs.write()
    problems = broken_examples()
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
