"""Fetches the programs of other projects that these tests need, once per machine."""

from pathlib import Path

import pytest

from tests.conformance.suite import fetch_peers


@pytest.fixture(scope="session", autouse=True)
def peers() -> Path:
    return fetch_peers()
