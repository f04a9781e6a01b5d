"""What users install is the wheel, not the tree."""

import subprocess
import sys
import venv
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import click
from packaging.requirements import Requirement

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
    assert {"toolreeve/console/index.html", "toolreeve/console/theme.js"} <= held
    assert not [name for name in held if name.startswith(("tests/", "bench/", "web/"))]

    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    (packages,) = fresh.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(str(DEPENDENCIES))
    run(*PIP, "--python", fresh / "bin/python", "install", "--no-deps", "--no-index", wheel)

    assert str(packages) in run(fresh / "bin/python", "-c", "import toolreeve; print(toolreeve.__file__)")
    assert "Usage: toolreeve" in run(fresh / "bin/toolreeve", "--help")


MOST_PACKAGES = 45
MOST_MEGABYTES = 110


def installed_with(name: str, extras: frozenset[str] = frozenset()) -> dict[str, Distribution]:
    """The distribution and all that it needs here, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(name, extras)]
    while waiting:
        each, wanted = waiting.pop()
        if (each, wanted) in seen:
            continue
        seen.add((each, wanted))
        found[each] = distribution(each)
        for text in found[each].requires or ():
            requirement = Requirement(text)
            environments = [{"extra": extra} for extra in ("", *wanted)]
            if requirement.marker is None or any(map(requirement.marker.evaluate, environments)):
                waiting.append((requirement.name.lower().replace("_", "-"), frozenset(requirement.extras)))
    return found


def megabytes(package: Distribution) -> float:
    paths = [Path(str(package.locate_file(file))) for file in package.files or ()]
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file()) / 1e6


def test_the_base_install_is_small() -> None:
    needed = installed_with("toolreeve")

    assert len(needed) <= MOST_PACKAGES, sorted(needed)
    sizes = {name: megabytes(package) for name, package in needed.items() if name != "toolreeve"}
    assert sum(sizes.values()) <= MOST_MEGABYTES, sizes
    assert not {"lxml", "pypdf", "python-docx", "brotli", "h2"} & set(needed)


def test_the_extras_bring_what_the_base_leaves_out() -> None:
    assert {"pypdf", "python-docx", "brotli", "h2"} <= set(
        installed_with("toolreeve", frozenset({"documents", "http"}))
    )


def python(program: str, *missing: str) -> str:
    """What a program prints where these packages are not installed."""
    absent = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in missing)
    return run(sys.executable, "-c", absent + program)


def test_a_document_without_its_package_says_what_to_install() -> None:
    program = """
from toolreeve.core.errors import ToolError
from toolreeve.tools.documents import read_document
for name in ("a.pdf", "a.docx"):
    try:
        read_document(b"", name)
    except ToolError as problem:
        print(problem.message, *problem.suggestions, sep=": ")
"""

    assert python(program, "pypdf", "docx") == (
        "a.pdf cannot be read: the package pypdf is not installed: "
        "pip install 'toolreeve[documents]'\n"
        "a.docx cannot be read: the package docx is not installed: "
        "pip install 'toolreeve[documents]'\n"
    )


def test_without_the_packages_for_http_only_what_can_be_unpacked_is_accepted() -> None:
    program = """
from toolreeve.core.errors import ToolError
from toolreeve.guard.network.body import ACCEPT_ENCODING, decoders_for
from toolreeve.guard.network.transport import HAS_HTTP2
print(ACCEPT_ENCODING, HAS_HTTP2)
try:
    decoders_for("br")
except ToolError as problem:
    print(*problem.suggestions)
"""

    told = python(program, "brotli", "backports.zstd", "compression.zstd", "h2")

    assert told == "gzip, deflate False\npip install 'toolreeve[http]'\n"
