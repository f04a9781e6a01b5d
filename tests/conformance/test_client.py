"""Our runtime is a client of the suite's servers: every scenario that a revision requires of a client passes."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.suite import ROOT, check_client

CLIENT = ROOT / "tests/conformance/scenario_client.py"


@pytest.fixture(scope="module")
def command() -> Iterator[str]:
    """What the suite is told to start; behind it one process has loaded the runtime for all of them."""
    with tempfile.TemporaryDirectory() as place:
        path = f"{place}/socket"
        serve = [sys.executable, "-m", "tests.conformance.fork_server", path]
        with subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield shlex.join([sys.executable, "-I", "-S", str(CLIENT), path])
            server.kill()


@pytest.mark.parametrize(("revision", "required"), [("2025-11-25", 18), ("2026-07-28", 32)])
@pytest.mark.usefixtures("peers")
def test_every_required_client_scenario_passes(command: str, revision: str, required: int, tmp_path: Path) -> None:
    report = check_client(command, revision, tmp_path)

    assert report.failed == [], report.printed
    assert report.counts == (required, required)
    assert report.status == 0
