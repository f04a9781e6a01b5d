"""The API under schemathesis: no internal error, and no response that its OpenAPI document does not promise."""

from bench.schema_fuzz import run


async def test_no_request_by_the_schema_breaks_the_server_or_gets_an_undocumented_response() -> None:
    found = await run(300)

    assert sum(found.values()) >= 300
    assert 500 not in found
