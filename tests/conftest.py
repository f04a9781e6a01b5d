"""Hypothesis judges what is right, not how fast a busy machine is. Every test gets a world of its own."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.world import World

settings.register_profile("toolreeve", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("toolreeve")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
