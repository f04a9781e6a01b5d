"""Rules about the tree that import contracts cannot state."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import toolreeve

SOURCE = Path(toolreeve.__file__).parent
TESTS = Path(__file__).parent
READS_THE_ENVIRONMENT = ("cli", "config", "hook")
SECTIONS = "config/sections/"
"""Its classes are public and named after the tables of toolreeve.toml, whatever else has that name."""
CROSS_CUTTING = TESTS / "cross_cutting.txt"


def modules(*below: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not below or name.split("/")[0] in below:
            yield name, parsed(path)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def calls(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def test_tools_open_nothing_and_evaluate_nothing_by_themselves() -> None:
    forbidden = {"open", "eval", "exec", "compile", "__import__"}

    found = {(name, call) for name, tree in modules("tools") for call in calls(tree) if call in forbidden}

    assert found == set()


def test_only_configuration_and_the_command_line_read_the_environment() -> None:
    found = {
        name
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
        if isinstance(node.value, ast.Name) and node.value.id == "os"
        if name.split("/")[0] not in READS_THE_ENVIRONMENT
    }

    assert found == set()


def test_only_the_record_speaks_to_the_database() -> None:
    found = {
        Path(name).parent.as_posix()
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        if any(alias.name in ("sqlite3", "psycopg") for alias in node.names)
    }

    assert found == {"record/sqlite", "record/postgres"}


def test_every_module_begins_with_what_it_is_in_twelve_words() -> None:
    first_lines = {name: (ast.get_docstring(tree) or "").split("\n")[0] for name, tree in modules()}

    assert {name: line for name, line in first_lines.items() if "?" in line or not 0 < len(line.split()) <= 12} == {}


def test_no_two_modules_define_a_class_of_the_same_name() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for name, tree in modules():
        if not name.startswith(SECTIONS):
            for node in tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].append(name)

    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def is_mirrored(test: Path) -> bool:
    """`tests/x/test_y.py` for `x/y.py` or the package `x/y`; `tests/x/y/test_*.py` for a module with many tests."""
    place = SOURCE / test.parent
    module = place / test.name.removeprefix("test_")
    return module.exists() or module.with_suffix("").is_dir() or place.with_suffix(".py").exists()


def test_tests_mirror_the_modules_they_test() -> None:
    """The others cut across several modules, and are listed."""
    tests = {path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}

    unmatched = {test.as_posix() for test in tests if not is_mirrored(test)}

    assert unmatched == set(CROSS_CUTTING.read_text().split())


@pytest.mark.parametrize("word", ["unittest.mock", "MagicMock"])
def test_no_test_mocks_what_it_tests(word: str) -> None:
    here = Path(__file__)

    assert [path for path in TESTS.rglob("*.py") if path != here and word in path.read_text()] == []
