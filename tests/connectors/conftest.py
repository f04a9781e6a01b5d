from typing import Any

import jsonschema_rs
import pytest

from tests.connectors.connected import Connected
from tests.world import World
from toolreeve import Toolreeve


@pytest.fixture
def connected(world: World, monkeypatch: pytest.MonkeyPatch) -> Connected:
    return Connected(world, monkeypatch)


@pytest.fixture(autouse=True)
def results_fit_their_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a connector returns in these tests fits the output schema that it declares."""
    call = Toolreeve.call

    async def checked(self: Toolreeve, tool: str, *args: Any, **more: Any) -> Any:
        result = await call(self, tool, *args, **more)
        if result.success:
            spec = self.tools.resolve(tool).spec
            assert spec.output is not None
            jsonschema_rs.validate(dict(spec.output), result.data)
        return result

    monkeypatch.setattr(Toolreeve, "call", checked)
