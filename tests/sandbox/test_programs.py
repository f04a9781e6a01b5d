"""Limited programs: no other is started, wherever it lies and whatever starts it."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import WHO, Runner
from toolreeve.sandbox.kernel.syscall_numbers import NUMBERS

PYTHON = str(Path(sys.executable).resolve())
LOADER = "/lib64/ld-linux-x86-64.so.2"
ALLOWED = ("bash", "cat")
WAYS = {
    "a helper of git": "/usr/lib/git-core/git --version",
    "the runtime's interpreter": f"{PYTHON} -c 'print(1)'",
    "the loader with the runtime's interpreter": f"{LOADER} {PYTHON} -c 'print(1)'",
    "the loader with a program of the system": f"{LOADER} /usr/bin/id",
    "a copy": f"cat {PYTHON} > own; chmod +x own; ./own -c 'print(1)'; {LOADER} ./own -c 'print(1)'",
    "a copy in /tmp": "cat /bin/bash > /tmp/own; chmod +x /tmp/own; /tmp/own -c 'echo 1'",
    "whatever lies in /usr": "shopt -s nullglob; for f in /usr/lib/*/* /usr/lib/*/*/* /usr/libexec/* /usr/share/*/*; do"
    ' case $f in *.so*) continue;; esac; [ -f "$f" ] && [ -x "$f" ] && "$f" --version < /dev/null && break; done; true',
}


@pytest.fixture(scope="module", params=WHO)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    folder = open_folder()
    (folder / "work").mkdir()
    made = Runner(request.param, folder / "work")
    yield made
    made.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("way", WAYS)
def test_no_other_program_is_started(runner: Runner, way: str) -> None:
    ended = runner.bash(WAYS[way], allowed_programs=ALLOWED, limits={"timeout": 60, "file_size_mb": 100})

    assert ended.get("stdout") == "", ended


@pytest.mark.parametrize("who", WHO)
def test_without_namespaces_no_other_program_is_started_by_itself(who: str) -> None:
    folder = open_folder()
    (folder / "work").mkdir()
    runner = Runner(who, folder / "work", forbidden=[NUMBERS["unshare"]])
    try:
        script = "/usr/lib/git-core/git --version; /usr/bin/id; cat /usr/bin/id > own; chmod +x own; ./own; echo end"
        ended = runner.bash(script, allowed_programs=ALLOWED)
    finally:
        runner.close()
        shutil.rmtree(folder)

    assert (ended["stdout"], ended["sandbox"]) == ("end\n", "landlock"), ended


def test_the_allowed_programs_work(runner: Runner) -> None:
    script = "echo 1 > f; cat f | while read x; do echo got $x; done; bash -c 'echo $(cat f)'"

    ended = runner.bash(script, allowed_programs=ALLOWED)

    assert (ended["stdout"], ended["sandbox"]) == ("got 1\n1\n", "full"), ended


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the system has no interpreter of its own")
def test_an_allowed_interpreter_finds_its_libraries(runner: Runner) -> None:
    script = "python3 -c 'import ctypes, json, ssl, sqlite3; print(json.dumps(1))'"

    assert runner.bash(script, allowed_programs=("bash", "python3"))["stdout"] == "1\n"


def test_a_program_named_by_its_path_is_started(runner: Runner) -> None:
    assert runner.bash(f"{PYTHON} -c 'print(1)'", allowed_programs=("bash", PYTHON))["stdout"] == "1\n"
