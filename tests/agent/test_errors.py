"""Errors of providers: what is repeated, and when."""

import pytest

from toolreeve.agent.errors import ModelError, ModelErrorKind, from_status, with_retries


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "Wed, 18 Nov 2026 07:28:00 GMT"}, None),
        ({}, None),
    ],
)
def test_a_pause_that_the_provider_asks_for_is_a_number_of_seconds(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert from_status("openai", 429, {}, headers).retry_after == seconds


async def test_a_pause_that_is_too_long_is_the_callers_to_decide() -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        turns += 1
        raise ModelError(ModelErrorKind.RATE_LIMIT, "come back tomorrow", retry_after=86_400)

    with pytest.raises(ModelError, match="tomorrow"):
        await with_retries(turn, lambda: 0.5)
    assert turns == 1
