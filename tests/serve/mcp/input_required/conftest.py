"""Resets the recorded runs between tests."""

import pytest

from tests.serve.mcp.input_required.upstream_tools import RUNS


@pytest.fixture(autouse=True)
def _no_runs() -> None:
    RUNS.clear()
