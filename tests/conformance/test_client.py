"""Our runtime is a client of the suite's servers: every scenario that a revision requires of a client passes."""

import sys
from pathlib import Path

import pytest

from tests.conformance.suite import ROOT, check_client

COMMAND = f"PYTHONPATH={ROOT} {sys.executable} -m tests.conformance.client"


@pytest.mark.parametrize(("revision", "required"), [("2025-11-25", 18), ("2026-07-28", 32)])
@pytest.mark.usefixtures("peers")
def test_every_required_client_scenario_passes(revision: str, required: int, tmp_path: Path) -> None:
    report = check_client(COMMAND, revision, tmp_path)

    assert report.failed == [], report.printed
    assert report.counts == (required, required)
    assert report.status == 0
