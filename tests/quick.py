"""`pytest --quick`: only tests that start no other program.

`starts_programs.txt` lists the files and folders that are left out. A test that starts a program all the same fails the
run, with the file to add to the list.
"""

import sys
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system"})


class Quick:
    def __init__(self) -> None:
        self.left_out = tuple((TESTS / "starts_programs.txt").read_text().split())
        self.running = ""
        self.violators: set[str] = set()
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _: tuple[Any, ...]) -> None:
        if event in STARTS and self.running:
            self.violators.add(self.running)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        starting = [item for item in items if item.path.relative_to(TESTS).as_posix().startswith(self.left_out)]
        config.hook.pytest_deselected(items=starting)
        items[:] = [item for item in items if item not in set(starting)]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running = nodeid.partition("::")[0]

    def pytest_runtest_logfinish(self) -> None:
        self.running = ""

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.violators:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            print("\nthese start programs; add them to tests/starts_programs.txt:", *sorted(self.violators), sep="\n  ")
