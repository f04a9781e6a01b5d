"""The programs of others that these tests need are fetched once for a machine."""

from pathlib import Path

import pytest

from tests.conformance.suite import fetch_peers


@pytest.fixture(scope="session", autouse=True)
def peers() -> Path:
    return fetch_peers()
