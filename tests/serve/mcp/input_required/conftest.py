"""No test sees what ran in another."""

import pytest

from tests.serve.mcp.input_required.upstream_tools import RUNS


@pytest.fixture(autouse=True)
def _no_runs() -> None:
    RUNS.clear()
