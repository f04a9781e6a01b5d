"""Files in the current directory are not imported instead of the program."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolreeve.safe_path import is_program

ROOT = Path(__file__).parents[1]
HOSTILE = ("asyncio", "mcp", "json", "orjson", "click", "re2", "typing", "pydantic", "anyio", "uvloop", "sqlite3")
MARK = "a file of the workspace was run"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    for name in HOSTILE:
        (folder / f"{name}.py").write_text(f"raise SystemExit({MARK!r})\n")
    return folder


@pytest.fixture
def impostor(workspace: Path) -> Path:
    """A workspace that has all of our names, as modules, as a package and as a program."""
    lie = f"print({MARK!r})\nraise SystemExit({MARK!r})\n"
    (workspace / "toolreeve.py").write_text(lie)
    (workspace / "toolreeve").mkdir()
    for name in ("__init__", "__main__", "builtin_server"):
        (workspace / "toolreeve" / f"{name}.py").write_text(lie)
    program = workspace / "bin" / "toolreeve"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho {MARK}\n")
    program.chmod(0o755)
    return workspace


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


def test_a_package_of_our_name_in_the_workspace_runs_instead_unless_python_gets_the_option(
    impostor: Path,
) -> None:
    """Before us nothing of ours runs, so that what we start, write and recommend must have the option."""
    assert MARK in run(impostor, sys.executable, "-m", "toolreeve", "--version").stdout

    for words in (["toolreeve", "tools"], ["toolreeve.builtin_server"]):
        done = run(impostor, sys.executable, "-P", "-m", *words)

        assert (done.returncode, MARK in done.stdout + done.stderr) == (0, False)


def test_what_adopt_writes_starts_us_even_if_another_command_has_our_name(
    impostor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = impostor.parent / "python"
    python.symlink_to(Path(sys.executable).resolve())
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("PATH", f"bin::.:{impostor / 'bin'}:{os.environ['PATH']}")
    servers = impostor.parent / ".gemini" / "settings.json"
    servers.parent.mkdir()
    servers.write_text('{"mcpServers": {"s": {"command": "true"}}}')

    adopted = run(impostor, str(python), "-P", "-m", "toolreeve", "adopt", "--no-count", "--client", "gemini")
    entry = json.loads(servers.read_text())["mcpServers"]["toolreeve"]
    started = run(impostor, entry["command"], *entry["args"])

    assert (entry["command"], entry["args"][:4]) == (str(python), ["-P", "-m", "toolreeve", "mcp"])
    for done in (adopted, started):
        assert (done.returncode, MARK in done.stdout + done.stderr) == (0, False), done.stderr


BINARY = {".pyc", ".compiled", ".woff2", ".png", ".webp", ".ico"}


def test_nothing_of_ours_starts_or_recommends_us_without_the_option() -> None:
    places = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "Makefile"]
    for folder in ("docs", "examples", ".ci", "src/toolreeve"):
        places += [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix not in BINARY]
    judged = ROOT / "src/toolreeve/policy/shell/programs"  # commands of others are told apart there
    started = re.compile(r"""(-P|-I)?[\s"',]+-m[\s"',]*toolreeve""")

    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in places
        if not path.is_relative_to(judged)
        for line in path.read_text().splitlines()
        if any(not told.group(1) for told in started.finditer(line))
    ]

    assert found == []


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
def test_our_own_program_is_recognised(argv: list[str], given: list[str], ours: bool) -> None:
    assert is_program(argv, given) is ours
