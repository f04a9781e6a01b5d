"""What users install is the wheel, not the tree."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import click

import toolreeve

ROOT = Path(__file__).parent.parent
SOURCE = Path(toolreeve.__file__).parent
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
DEPENDENCIES = Path(click.__file__).parent.parent


def run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_whole_package_and_its_command_runs(tmp_path: Path) -> None:
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())

    assert {f"toolreeve/{path.relative_to(SOURCE).as_posix()}" for path in SOURCE.rglob("*.py")} <= held
    assert {"toolreeve/py.typed", "toolreeve/policy/shell/programs/compiled.json"} <= held
    assert not [name for name in held if name.startswith(("tests/", "bench/"))]

    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    (packages,) = fresh.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(str(DEPENDENCIES))
    run(*PIP, "--python", fresh / "bin/python", "install", "--no-deps", "--no-index", wheel)

    assert str(packages) in run(fresh / "bin/python", "-c", "import toolreeve; print(toolreeve.__file__)")
    assert "Usage: toolreeve" in run(fresh / "bin/toolreeve", "--help")
