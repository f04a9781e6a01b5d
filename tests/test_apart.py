"""What lies in the folder that we are started in is not run in our place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolreeve.apart import is_program

HOSTILE = ("asyncio", "mcp", "json", "orjson", "click", "re2", "typing", "pydantic", "anyio", "uvloop", "sqlite3")
MARK = "a file of the workspace was run"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(f"raise SystemExit({MARK!r})\n")
    return folder


def run(workspace: Path, *command: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        command,
        cwd=workspace,
        env=kept | {"HOME": str(workspace.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    "words",
    [
        ("-m", "toolreeve.builtin_server"),
        ("-mtoolreeve.builtin_server",),
        ("-P", "-m", "toolreeve.builtin_server"),
        ("-m", "toolreeve", "mcp"),
        ("-m", "toolreeve", "tools"),
        ("-m", "toolreeve", "servers"),
        ("-m", "toolreeve.system_info"),
    ],
)
def test_modules_of_the_workspace_are_not_taken_for_others(workspace: Path, words: tuple[str, ...]) -> None:
    done = run(workspace, sys.executable, *words)

    assert MARK not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


def test_the_installed_commands_import_nothing_from_the_workspace(workspace: Path) -> None:
    for name, words in (("toolreeve", ["tools"]), ("toolreeve-system-info", [])):
        done = run(workspace, str(Path(sys.executable).with_name(name)), *words)

        assert MARK not in done.stdout + done.stderr
        assert done.returncode == 0


def test_a_program_that_is_not_ours_keeps_its_own_folder(workspace: Path) -> None:
    (workspace / "beside.py").write_text("NAME = 'beside'\n")
    (workspace / "theirs.py").write_text("import toolreeve, beside\nprint(beside.NAME)\n")
    for name in HOSTILE:
        (workspace / f"{name}.py").unlink()

    assert run(workspace, sys.executable, "-m", "theirs").stdout == "beside\n"
    assert run(workspace, sys.executable, "theirs.py").stdout == "beside\n"


@pytest.mark.parametrize(
    ("argv", "given", "ours"),
    [
        (["-m"], ["python", "-m", "toolreeve"], True),
        (["-m", "mcp"], ["python", "-X", "dev", "-m", "toolreeve", "mcp"], True),
        (["-m"], ["python", "-Bmtoolreeve.system_info"], True),
        (["-m", "toolreeve"], ["python", "-m", "pytest", "toolreeve"], False),
        (["-m"], ["python", "-m", "toolreeve_other"], False),
        (["/bin/toolreeve", "mcp"], ["python", "/bin/toolreeve", "mcp"], False),
        (["-c"], ["python", "-c", "import toolreeve"], False),
        ([""], [""], False),
        ([], [], False),
    ],
)
def test_it_is_known_whether_the_program_is_ours(argv: list[str], given: list[str], ours: bool) -> None:
    assert is_program(argv, given) is ours
