"""The OpenAPI document: valid, complete, and the one that is committed for the console."""

import json
from pathlib import Path

from openapi_spec_validator import validate

from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.serve.api.catalogue import ENDPOINTS, document

COMMITTED = Path(__file__).parents[3] / "docs" / "reference" / "openapi.json"


def test_the_document_is_valid_openapi() -> None:
    validate(document())


def test_every_endpoint_is_described_with_its_scope() -> None:
    operations = [each for path in document()["paths"].values() for each in path.values()]

    assert len(operations) == len(ENDPOINTS) == len({each["operationId"] for each in operations})
    assert all(each["summary"] and "scope" in each["description"] for each in operations)


def test_the_committed_document_is_current() -> None:
    assert json.loads(COMMITTED.read_text()) == document(), "run `make docs`"


async def test_it_is_served(world: World) -> None:
    async with serving(world.reeve()) as server:
        assert (await server.client.get("/api/v1/openapi.json")).json() == document()
