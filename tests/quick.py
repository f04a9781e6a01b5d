"""`pytest --quick`: only tests that start no other program and take no seconds.

`not_quick.txt` lists the files and folders that are left out. A test that starts a program all the same fails, and says
what to add to the list.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system"})


class Quick:
    def __init__(self) -> None:
        self._left_out = tuple((TESTS / "not_quick.txt").read_text().split())
        self._started = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _: tuple[Any, ...]) -> None:
        if event in STARTS:
            self._started = True

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Not even imported: that alone takes half a minute."""
        name = _name(collection_path) + ("/" if collection_path.is_dir() else "")
        return True if name.startswith(self._left_out) else None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._started = False
        result = yield
        if self._started:
            pytest.fail(f"starts a program; add {_name(item.path)} to tests/not_quick.txt", pytrace=False)
        return result


def _name(path: Path) -> str:
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else ""
