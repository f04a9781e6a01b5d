"""Compiler of the YAML program specifications into one JSON file.

    python -P -m toolreeve.policy.shell.programs.compile

Imports nothing of the package: the build of the wheel loads it before that can be imported. It merges and does not
validate; `validation.py` checks the specifications and their examples.
"""

import json
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent
COMPILED = PROGRAMS / "compiled.json"
EXAMPLES = ("matches", "not_matches")
_ONLY_IN_YAML = (*EXAMPLES, "also")


def families() -> dict[str, dict[str, Any]]:
    """Every YAML file by name, with its programs."""
    import yaml

    return {path.stem: yaml.safe_load(path.read_text()) for path in sorted(PROGRAMS.glob("*.yaml"))}


def merged() -> dict[str, dict[str, Any]]:
    """Programs by name, aliases resolved, examples left out. Raises ValueError for a name that is specified twice."""
    table: dict[str, dict[str, Any]] = {}
    for family, programs in families().items():
        for name, data in programs.items():
            plain = {field: value for field, value in data.items() if field not in _ONLY_IN_YAML}
            for alias in (name, *data.get("also", "").split()):
                if alias in table:
                    raise ValueError(f"{family}.yaml: {alias} is specified twice")
                table[alias] = plain
    return table


def write() -> None:
    COMPILED.write_text(json.dumps(merged(), separators=(",", ":"), ensure_ascii=False))


if __name__ == "__main__":
    write()
