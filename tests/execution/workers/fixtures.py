"""Fixtures of all tests with workers: a NATS server, and a fleet on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.execution.workers.fleet import Fleet
from tests.execution.workers.nats_server import NatsServer


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "nats").start()
    yield server
    server.stop()


@pytest.fixture
def fleet(tmp_path: Path, nats: NatsServer) -> Iterator[Fleet]:
    made = Fleet(tmp_path, nats.url)
    yield made
    made.stop()
