"""A process that outlives its test fails the run, by name."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parent.parent
CONFTEST = """
from tests.leftovers import Leftovers

def pytest_configure(config):
    config.pluginmanager.register(Leftovers())
"""
TEST = """
import subprocess
from pathlib import Path

def test_that_leaves_a_process():
    left = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path("pid").write_text(str(left.pid))
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_process_that_a_test_left_running_is_named_and_ended(tmp_path: Path, workers: str) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TEST)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:schemathesis", "-p", "no:langsmith_plugin", "-n", workers]

    done = subprocess.run(
        command, cwd=tmp_path, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
    assert "test_it.py::test_that_leaves_a_process (call): sleep 600" in done.stdout
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
