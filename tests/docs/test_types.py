"""The examples, the README's Python, and typical uses of the API pass mypy --strict and pyright."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import read_blocks

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
USES = '''\
"""What a typed program expects of the API."""

from typing import assert_type

from toolreeve import Failed, Succeeded, Toolreeve, ToolResult, tool


@tool
def double(n: int) -> int:
    """Twice n."""
    return n * 2


@tool(danger="safe", timeout=5.0)
async def later(text: str = "") -> list[str]:
    """Later."""
    return [text]


class Box:
    @tool(danger="low")
    def add(self, by: int) -> int:
        """Add."""
        return by


assert_type(double(3), int)
assert_type(Box().add(by=1), int)


def show(result: ToolResult) -> str:
    if result.success is True:
        assert_type(result, Succeeded)
        return str(result.data["lines"])
    return result.error.code


def explain(result: ToolResult) -> str:
    if result.error:
        return result.error.message
    return str(result.unwrap())


def kind(result: ToolResult) -> type:
    match result:
        case Succeeded():
            return Succeeded
        case Failed():
            return Failed


with Toolreeve.sync(workspace=".", mode="plan", tools=[double, Box().add], builtin=["file"]) as reeve:
    assert_type(reeve.call("double", n=3), ToolResult)
    assert_type(reeve.batch([{"tool": "double"}], concurrency=2), list[ToolResult])
    show(reeve.call("read_file", {"path": "a"}, session="s", timeout=3.0))


async def main() -> None:
    async with Toolreeve(tools=[later]) as reeve:
        assert_type(await reeve.call("later"), ToolResult)
        assert_type(await later("x"), list[str])
'''
NARROWED = """\
from toolreeve import ToolResult


def code(result: ToolResult) -> str:
    return "" if result.success else result.error.code
"""
WRONG = {
    "name": "from toolreeve import Nonsense\n",
    "constructor": "from toolreeve import Toolreeve\nToolreeve(wrkspace='.')\n",
    "sync": "from toolreeve import Toolreeve\nToolreeve.sync(wrkspace='.')\n",
    "method": "from toolreeve import SyncToolreeve\ndef f(r: SyncToolreeve) -> None:\n    r.undo(1)\n",
    "decorated": "from toolreeve import tool\n@tool\ndef f(n: int) -> int:\n    return n\nf('x')\n",
    "unchecked": "from toolreeve import ToolResult\ndef f(r: ToolResult) -> str:\n    return r.error.code\n",
}


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    blocks = [block for block in read_blocks(ROOT / "README.md") if block.language == "python"]
    for number, block in enumerate(blocks):
        (tmp_path / f"readme_{number}.py").write_text(block.text)
    (tmp_path / "uses.py").write_text(USES)
    return [str(path) for folder in (tmp_path, ROOT / "examples", PROGRAMS) for path in sorted(folder.glob("*.py"))]


def mypy(*files: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--scripts-are-modules", *files]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def pyright(*files: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "basedpyright", "--level", "error", "--pythonpath", sys.executable, *files]
    return subprocess.run(command, cwd=Path(files[0]).parent, capture_output=True, text=True, check=False)


def test_mypy_accepts_examples_and_readme(sources: list[str], tmp_path: Path) -> None:
    (tmp_path / "narrowed.py").write_text(NARROWED)

    checked = mypy(*sources, str(tmp_path / "narrowed.py"))

    assert checked.returncode == 0, checked.stdout


def test_pyright_accepts_examples_and_readme(sources: list[str], tmp_path: Path) -> None:
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')

    checked = pyright(*sources)

    assert checked.returncode == 0, checked.stdout


def test_mypy_finds_misuse(tmp_path: Path) -> None:
    for name, text in WRONG.items():
        (tmp_path / f"{name}.py").write_text(text)

    found = mypy(*map(str, tmp_path.glob("*.py"))).stdout

    assert sorted(name for name in WRONG if f"{name}.py:" in found) == sorted(WRONG)


@pytest.mark.parametrize("name", ["application", "script"])
def test_the_typed_programs_run(name: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    ran = subprocess.run(
        [sys.executable, PROGRAMS / f"{name}.py"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )

    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("number", range(3))
def test_the_readmes_python_can_be_pasted_into_a_script(number: int, tmp_path: Path) -> None:
    block = [block for block in read_blocks(ROOT / "README.md") if block.language == "python"][number]
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("hello\n")
    (work / "script.py").write_text(block.text)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=work, env=environment, capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout
