"""Output parsers: counts printed by test runners, linters, formatters and type checkers.

Counts are a help, never the verdict: whether a run succeeded is its exit status. Output that is not understood is
ignored.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from toolreeve.tools.quality_commands import Counts, Purpose

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_NAMES = {
    "passed": "passed",
    "pass": "passed",
    "passing": "passed",
    "failed": "failed",
    "fail": "failed",
    "failing": "failed",
    "failures": "failed",
    "error": "errors",
    "errors": "errors",
    "skipped": "skipped",
    "pending": "skipped",
    "todo": "skipped",
}
_PYTEST = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s", re.MULTILINE)
_NO_TESTS = re.compile(r"^=*\s*no tests ran|No test files found|^Ran 0 tests", re.MULTILINE)
_VITEST = re.compile(r"^\s*Tests\s+([^\n:]*?)\s*\(\d+\)", re.MULTILINE)
_JEST = re.compile(r"^Tests:\s+(.*), \d+ total", re.MULTILINE)
_NODE = re.compile(r"^(?:#|ℹ) (pass|fail|skipped|todo) (\d+)", re.MULTILINE)
_MOCHA = re.compile(r"^\s*(\d+) (passing|failing|pending)\b", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in [\d.]+s\s+(?:OK|FAILED)(?: \((.*)\))?", re.MULTILINE)
_COUNTED = re.compile(r"(\d+) ([a-z]+)")
_SET = re.compile(r"(\w+)=(\d+)")


def count(purpose: Purpose, stdout: str, stderr: str) -> Counts:
    text = _COLOUR.sub("", f"{stdout}\n{stderr}")
    for read in _READERS[purpose]:
        if (found := read(text)) is not None:
            return found
    return {}


def summarise(counts: Mapping[str, int]) -> str:
    """`1 failed, 2 passed`, without zeros."""
    parts = []
    for name, number in counts.items():
        if number:
            parts.append(f"{number} {name.removesuffix('s') if number == 1 else name}")
    return ", ".join(parts)


def _tests(**counts: int) -> Counts:
    return {"passed": 0, "failed": 0, "errors": 0, "skipped": 0} | counts


def _summed(pairs: Sequence[tuple[str, str]]) -> Counts:
    found = _tests()
    for number, name in pairs:
        if (known := _NAMES.get(name)) is not None:
            found[known] += int(number)
    return found


def _pytest(text: str) -> Counts | None:
    lines = _PYTEST.findall(text)
    if not lines:
        return _tests() if _NO_TESTS.search(text) else None
    return _summed(_COUNTED.findall(lines[-1]))


def _listed(pattern: re.Pattern[str]) -> Callable[[str], Counts | None]:
    def read(text: str) -> Counts | None:
        found = pattern.findall(text)
        return _summed(_COUNTED.findall(found[-1])) if found else None

    return read


def _node(text: str) -> Counts | None:
    found = _NODE.findall(text)
    return _summed([(number, name) for name, number in found]) if found else None


def _mocha(text: str) -> Counts | None:
    found = _MOCHA.findall(text)
    return _summed(found) if found else None


def _unittest(text: str) -> Counts | None:
    found = _UNITTEST.search(text)
    if found is None:
        return None
    rest = _summed([(number, name) for name, number in _SET.findall(found[2] or "")])
    return rest | {"passed": int(found[1]) - sum(rest.values())}


_RUFF = re.compile(r"^Found (\d+) errors?", re.MULTILINE)
_ESLINT = re.compile(r"^✖ (\d+) problems? \((\d+) errors?, (\d+) warnings?", re.MULTILINE)
_PLACE = re.compile(r"^([^\s:][^:\n]*):\d+:(?:\d+:)? (?!note:)\S", re.MULTILINE)
_ESLINT_FILE = re.compile(r"^(/\S.*)\n\s+\d+:\d+", re.MULTILINE)


def _ruff(text: str) -> Counts | None:
    found = _RUFF.search(text)
    if found is None:
        return {"issues": 0, "files": 0} if "All checks passed!" in text else None
    return {"issues": int(found[1]), "files": len(set(_PLACE.findall(text)))}


def _eslint(text: str) -> Counts | None:
    found = _ESLINT.search(text)
    if found is None:
        return None
    issues, errors, warnings = map(int, found.groups())
    return {"issues": issues, "errors": errors, "warnings": warnings, "files": len(set(_ESLINT_FILE.findall(text)))}


def _places(text: str) -> Counts:
    """Counts the lines that begin with a place in a file."""
    found = _PLACE.findall(text)
    return {"issues": len(found), "files": len(set(found))}


_REFORMAT = re.compile(r"(\d+) files? (?:would be )?reformatted")
_UNCHANGED = re.compile(r"(\d+) files? (?:would be left unchanged|left unchanged|already formatted)")
_PRETTIER = re.compile(r"^\[(?:warn|error)\] (?!Code style|Error occurred)(\S.*)$", re.MULTILINE)
_PRETTIER_WROTE = re.compile(r"^(\S+) \d+ms( \(unchanged\))?$", re.MULTILINE)


def _reformatted(text: str) -> Counts | None:
    changed = _REFORMAT.search(text)
    unchanged = _UNCHANGED.search(text)
    if changed is None and unchanged is None:
        return None
    issues = int(changed[1]) if changed else 0
    clean = int(unchanged[1]) if unchanged else 0
    return {"issues": issues, "files": issues + clean}


def _prettier(text: str) -> Counts | None:
    if wrote := _PRETTIER_WROTE.findall(text):
        return {"issues": sum(1 for _, unchanged in wrote if not unchanged), "files": len(wrote)}
    found = _PRETTIER.findall(text)
    return {"issues": len(found)} if found or "All matched files use Prettier" in text else None


_MYPY = re.compile(r"^Found (\d+) errors? in (\d+) files?", re.MULTILINE)
_MYPY_GOOD = re.compile(r"^Success: no issues found", re.MULTILINE)
_PYRIGHT = re.compile(r"^(\d+) errors?, (\d+) warnings?", re.MULTILINE)
_PYRIGHT_FILE = re.compile(r"^(/\S+)$", re.MULTILINE)
_TSC = re.compile(r"^(\S[^\n(]*)\(\d+,\d+\): error TS\d+|^(\S+):\d+:\d+ - error TS\d+|^error TS\d+", re.MULTILINE)


def _mypy(text: str) -> Counts | None:
    if _MYPY_GOOD.search(text):
        return {"issues": 0, "files": 0}
    found = _MYPY.search(text)
    return {"issues": int(found[1]), "files": int(found[2])} if found else None


def _pyright(text: str) -> Counts | None:
    found = _PYRIGHT.search(text)
    if found is None:
        return None
    errors, warnings = int(found[1]), int(found[2])
    files = len(set(_PYRIGHT_FILE.findall(text)))
    return {"issues": errors + warnings, "errors": errors, "warnings": warnings, "files": files}


def _tsc(text: str) -> Counts | None:
    found = _TSC.findall(text)
    return {"issues": len(found), "files": len({one or other for one, other in found if one or other})}


_READERS: Mapping[Purpose, Sequence[Callable[[str], Counts | None]]] = {
    "tests": (_listed(_VITEST), _listed(_JEST), _pytest, _node, _mocha, _unittest),
    "lint": (_ruff, _eslint, _places),
    "format": (_reformatted, _prettier),
    "format_check": (_reformatted, _prettier),
    "typecheck": (_mypy, _pyright, _tsc),
    "build": (),
}
