import pytest

from tests.connectors.connected import Connected
from tests.world import World


@pytest.fixture
def connected(world: World, monkeypatch: pytest.MonkeyPatch) -> Connected:
    return Connected(world, monkeypatch)
