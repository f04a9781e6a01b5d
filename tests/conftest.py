"""Hypothesis judges what is right, not how fast a busy machine is. Every test gets a world of its own."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.leftovers import Leftovers
from tests.memory_disk import memory_folder
from tests.quick import Quick
from tests.world import World

pytest_plugins = ["tests.execution.workers.fixtures"]
REAL_AGENTS = Path(__file__).parent / "real_agents"

settings.register_profile("toolreeve", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("toolreeve"), max_examples=20)
settings.load_profile("toolreeve")


@pytest.fixture
def state_folder() -> Iterator[Path]:
    """Where the databases of tests are: in memory, unless a folder of tests says otherwise."""
    with memory_folder() as folder:
        yield folder


@pytest.fixture
def world(tmp_path: Path, state_folder: Path) -> World:
    return World(tmp_path, state_folder / "state")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The scenarios with real agents download them: only `make agents`, which names their folder, runs them."""
    named = any("real_agents" in word for word in config.args)
    return True if collection_path == REAL_AGENTS and not named else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start no other program and take no seconds")


def pytest_configure(config: pytest.Config) -> None:
    """Whoever starts the tests in the background may have them ignore interrupts; what they start would then, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Leftovers())
    if config.getoption("--quick"):
        settings.load_profile("quick")
        config.pluginmanager.register(Quick())
