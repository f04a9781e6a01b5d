from pathlib import Path

import pytest

from toolreeve.core.errors import ConfigError
from toolreeve.scripted.python_files import load_tools


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.py"
    path.write_text(text)
    return path


def test_tools_are_found_in_the_order_in_which_they_are_written(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "from toolreeve.core.tool import tool\n"
        "@tool\ndef second(text: str) -> str:\n    'Say it.'\n    return text\n"
        "@tool\ndef first() -> str:\n    return ''\n"
        "def helper() -> None: ...\n"
        "def listed() -> str:\n    return ''\n"
        "TOOLS = [listed, first]\n",
    )

    tools = load_tools(path)

    assert [tool.spec.name for tool in tools] == ["second", "first", "listed"]
    assert {tool.spec.source for tool in tools} == {str(path)}


def test_tools_that_a_file_only_imports_are_not_its_own(tmp_path: Path) -> None:
    path = written(tmp_path, "from toolreeve.tools.calculate import calculate\n")

    with pytest.raises(ConfigError, match="contains no tools"):
        load_tools(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def broken(:\n", r"mine\.py:1: cannot be loaded: SyntaxError"),
        ("\nx = 1\nraise ValueError('no')\n", r"mine\.py:3: cannot be loaded: ValueError: no"),
        ("TOOLS = [3]\n", "3 is not a tool"),
    ],
)
def test_a_file_that_fails_names_its_line(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        load_tools(written(tmp_path, text))


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="FileNotFoundError"):
        load_tools(tmp_path / "none.py")
