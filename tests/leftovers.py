"""Ends the processes that tests left running, and fails the run with their names."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

import psutil
import pytest

RUN = "PYTEST_XDIST_TESTRUNUID"
WORKER = "PYTEST_XDIST_WORKER"
TEST = "PYTEST_CURRENT_TEST"
"""pytest puts its name into the environment, and whatever a test starts inherits it."""
OWN = "from multiprocessing."
"""Helpers of Python's own, which end with this process."""


class Leftovers:
    def __init__(self) -> None:
        self._found: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """After the last fixture of the session is gone, in each process that ran tests."""
        if (output := getattr(session.config, "workeroutput", None)) is not None:
            output["leftovers"] = _end_all()
        elif not session.config.pluginmanager.hasplugin("dsession"):  # whose workers are below this process
            self._found += _end_all()
        if self._found:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._found += getattr(node, "workeroutput", {}).get("leftovers", ())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._found:
            terminalreporter.section("processes that tests left running", red=True)
            for line in self._found:
                terminalreporter.line(line)


def _end_all() -> list[str]:
    found = list(_survivors())
    lines = []
    for process, environment in found:
        with contextlib.suppress(psutil.Error):
            lines.append(f"{environment.get(TEST, 'unknown test')}: {' '.join(process.cmdline())[:200]}")
            process.kill()
    psutil.wait_procs([process for process, _ in found], timeout=10)
    return lines


def _survivors() -> Iterator[tuple[psutil.Process, Mapping[str, str]]]:
    """Processes below this one, and orphans that tests of this process started."""
    below = {process.pid for process in psutil.Process().children(recursive=True)}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if process.pid not in below and not _is_ours(environment):
                continue
            if process.status() != psutil.STATUS_ZOMBIE and OWN not in " ".join(process.cmdline()):
                yield process, environment


def _is_ours(environment: Mapping[str, str]) -> bool:
    """Only tests have the name of a test; workers of one run share its number."""
    same = all(environment.get(name) == os.environ.get(name) for name in (RUN, WORKER))
    return RUN in os.environ and TEST in environment and same
