"""A PostgreSQL server, and both databases for tests of what they share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.backends import Backend
from tests.record.postgres.server import PostgresServer
from tests.world import World


@pytest.fixture
def tmp_path(state_folder: Path) -> Path:
    """These tests have databases, and hardly anything else."""
    return state_folder


@pytest.fixture
def world(tmp_path_factory: pytest.TempPathFactory, state_folder: Path) -> World:
    return World(tmp_path_factory.mktemp("world"), state_folder / "state")


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
