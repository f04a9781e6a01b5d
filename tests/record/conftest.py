"""A PostgreSQL server, and both databases for tests of what they share."""

from collections.abc import Iterator

import pytest

from tests.record.backends import Backend
from tests.record.postgres.server import PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    """Tests that use it run with each database; `store_at` opens stores in it."""
    Backend.server = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    yield request.param
    Backend.server = None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The quick tests start no server."""
    if config.getoption("--quick"):
        items[:] = [item for item in items if "[postgresql" not in item.name]
