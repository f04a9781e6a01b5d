"""Fuzzes the REST API by its OpenAPI document: no 500, no response that violates its schema.

`python -m bench.schema_fuzz [REQUESTS]` serves a scratch workspace and sends at least so many requests to it.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import schemathesis
import schemathesis.specs.openapi.checks
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from tests.serve.api.api_server import bearer, serving
from tests.world import World

from toolreeve.core.call import Role
from toolreeve.record.credentials import TOKEN
from toolreeve.serve.tokens import new_stored

TOKEN_TEXT = "a-token-for-the-fuzzer"
SKIPPED = frozenset({"stream_events"})
"""Endless by design."""


def fuzz(url: str, requests: int, *, seed: int = 1) -> Counter[int]:
    """The statuses of all responses. Raises AssertionError for a 500 and for what the document does not promise."""
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json", headers=bearer(TOKEN_TEXT))
    operations: list[Any] = [each.ok() for each in schema.get_all_operations()]  # type: ignore[union-attr]
    found: Counter[int] = Counter()
    per_operation = -(-requests // (2 * len(operations)))
    while sum(found.values()) < requests:  # an operation without parameters is one request
        for operation in operations:
            if operation.definition.raw["operationId"] not in SKIPPED:
                for mode in GenerationMode:
                    with contextlib.suppress(Unsatisfiable):  # nothing violates the schema of no parameters
                        _fuzz_operation(operation, mode, per_operation, found, seed)
        seed += 1
    return found


def _fuzz_operation(operation: Any, mode: GenerationMode, count: int, found: Counter[int], seed: int) -> None:
    @hypothesis.seed(seed)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def send(case: Any) -> None:
        response = case.call(headers=bearer(TOKEN_TEXT), timeout=30)
        found[response.status_code] += 1
        assert response.status_code < 500 or response.status_code in (502, 503, 504), response.text[:2000]
        refused = 400 <= response.status_code < 500
        case.validate_response(response, excluded_checks=[*EXCLUDED, *(REJECTIONS if refused else ())])

    send()


EXCLUDED = [
    schemathesis.checks.not_a_server_error,
    schemathesis.specs.openapi.checks.positive_data_acceptance,
]
"""The 502 of a tool is no error of ours, which is asserted instead; and what is valid by the schema may still be
refused: an unknown tool, a stale cursor."""


REJECTIONS = [schemathesis.specs.openapi.checks.negative_data_rejection]
"""Only some statuses count as a rejection by default: 413 does not."""


async def run(requests: int) -> Counter[int]:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        async with serving(world.reeve()) as server:
            token = new_stored(TOKEN_TEXT, kind=TOKEN, user="fuzz", role=Role.ADMIN, now=time.time())
            await server.reeve.internals.store.credentials.add(token)
            await server.until(bearer(TOKEN_TEXT), 200, user="fuzz")
            return await asyncio.to_thread(fuzz, server.url, requests)


def main() -> int:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    found = asyncio.run(run(requests))
    sys.stdout.write(f"{sum(found.values())} requests: {dict(sorted(found.items()))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
