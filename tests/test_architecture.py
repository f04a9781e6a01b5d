"""What import contracts cannot say about who touches the machine."""

import ast
from collections.abc import Iterator
from pathlib import Path

import toolreeve

SOURCE = Path(toolreeve.__file__).parent
READS_THE_ENVIRONMENT = ("cli", "config")


def modules(*below: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not below or name.split("/")[0] in below:
            yield name, ast.parse(path.read_text())


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


def test_every_module_opens_with_the_question_it_answers() -> None:
    silent = [name for name, tree in modules() if not ast.get_docstring(tree)]

    assert silent == []
