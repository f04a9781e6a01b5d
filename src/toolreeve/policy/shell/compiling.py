"""How do the specifications become what is loaded? The YAML files are checked and written as one JSON file.

    python -P -m toolreeve.policy.shell.compiling          writes programs/compiled.json, if every example holds
    python -P -m toolreeve.policy.shell.compiling --check  fails when it is out of date or an example does not hold

`matches` are commands that must be known; `not_matches` are commands that must not run unasked.
"""

import re
import sys
from pathlib import Path
from typing import Any

from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ConfigError
from toolreeve.policy.shell.specs import FIELDS, ROLES, Program

PROGRAMS = Path(__file__).parent / "programs"
COMPILED = PROGRAMS / "compiled.json"
_EXAMPLES = ("matches", "not_matches")


def families() -> dict[str, dict[str, Any]]:
    """Every YAML file by name, with its programs."""
    import yaml

    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted(PROGRAMS.glob("*.yaml"))}


def compiled() -> dict[str, dict[str, Any]]:
    """Programs by name, other names resolved, examples left out."""
    from toolreeve.policy.shell.judges import JUDGES

    table: dict[str, dict[str, Any]] = {}
    for family, programs in families().items():
        for name, data in programs.items():
            check(f"{family}.yaml", name, data, frozenset(JUDGES))
            plain = {field: value for field, value in data.items() if field not in (*_EXAMPLES, "also")}
            for alias in (name, *data.get("also", "").split()):
                if alias in table:
                    raise ConfigError(f"{alias} is specified twice", source=f"{family}.yaml", key=alias)
                table[alias] = plain
    return table


def check(source: str, name: str, data: Any, judges: frozenset[str]) -> None:
    if not isinstance(data, dict):
        raise ConfigError("not a mapping", source=source, key=name)
    for field, value in data.items():
        if field not in FIELDS:
            raise ConfigError(f"unknown field {field!r}", source=source, key=name)
        if field in ("flags", "maybe", "operands") or field in ROLES:
            _check_words(source, name, field, value)
    if data.get("judge", next(iter(judges))) not in judges:
        raise ConfigError(f"no judge {data['judge']!r}", source=source, key=name)
    for operand in data.get("operands", "").split():
        if operand.rstrip("*?+") not in ROLES:
            raise ConfigError(f"no role {operand!r}", source=source, key=name)
    _check_harmless(source, name, data)
    for sub, inner in (data.get("sub") or {}).items():
        check(source, f"{name} {sub}", inner or {}, judges)


def _check_harmless(source: str, name: str, data: dict[str, Any]) -> None:
    """A word that may be a flag must be supposed to be one wherever that makes a difference."""
    if (harmless := data.get("harmless", False)) not in (True, False, "reads"):
        raise ConfigError(f"harmless is {harmless!r}, neither true nor 'reads'", source=source, key=name)
    supposed = Program(name, data).supposed
    if harmless == "reads" and not supposed:
        raise ConfigError("it reads more by a flag, and none is supposed", source=source, key=name)
    prints = "prints" in data or any("prints" in mode for mode in data.get("modes", {}).values())
    if harmless and prints and not set(supposed).intersection(Program(name, data).rewrites):
        raise ConfigError("what it prints is believed, and no flag that rewrites it supposed", source=source, key=name)


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
        for family, programs in families().items()
        for name, data in programs.items()
        for field in _EXAMPLES
        for command in data.get(field, ())
    ]


def broken_examples() -> list[str]:
    """The examples that do not hold, each with what was found instead."""
    from toolreeve.policy.shell.analysis import analyse

    broken = []
    for place, command, known in examples():
        found = analyse(command, cwd="/project", home="/home/me", root="/project")
        if known and not found.known:
            broken.append(f"{place}: {command!r} should be known: {found.reason}")
        if not known and found.danger <= DangerLevel.LOW:
            broken.append(f"{place}: {command!r} should not run unasked")
    return broken


def text() -> str:
    """One program a line, so that a change shows as the program it changes."""
    from toolreeve.core import json

    lines = [f"{json.dumps(name).decode()}:{json.dumps(data).decode()}" for name, data in sorted(compiled().items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    before, now = COMPILED.read_text(), text()
    if "--check" not in sys.argv:
        COMPILED.write_text(now)
    problems = broken_examples()
    if problems and "--check" not in sys.argv:
        COMPILED.write_text(before)
        problems.append("nothing was written")
    elif now != COMPILED.read_text():
        problems.append("compiled.json is out of date: python -P -m toolreeve.policy.shell.compiling")
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
