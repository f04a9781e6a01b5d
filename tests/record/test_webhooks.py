"""Webhooks: what an endpoint wants, quiet hours and back-off, as pure functions."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolreeve.record.webhooks import (
    LONGEST_RETRY_AFTER,
    RetryConfig,
    Webhook,
    read_retry_after,
    retry_delay,
    sign,
    zone_of,
)

HOOK = Webhook(id="h", url="https://a.example", secret="s" * 16)


def at(hour: int, minute: int = 0) -> float:
    return datetime(2026, 1, 1, hour, minute, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("options", "event", "task", "wanted"),
    [
        ({}, "tool_execution", "1", True),
        ({"events": ("tool_changed",)}, "tool_execution", "1", False),
        ({"without": ("tool_execution",)}, "tool_execution", "1", False),
        ({"events": ("tool_execution",), "without": ("tool_execution",)}, "tool_execution", "1", False),
        ({"task": "1"}, "tool_execution", "2", False),
        ({"enabled": False}, "tool_execution", "1", False),
    ],
)
def test_an_endpoint_gets_the_events_that_it_enabled_and_did_not_disable(
    options: dict[str, object], event: str, task: str, wanted: bool
) -> None:
    hook = Webhook(id="h", url="https://a.example", secret="s" * 16, **options)  # type: ignore[arg-type]

    assert hook.wants(event, task) is wanted


@pytest.mark.parametrize(
    ("start", "end", "zone", "hour", "quiet"),
    [
        ("22:00", "07:00", "UTC", 23, True),
        ("22:00", "07:00", "UTC", 6, True),
        ("22:00", "07:00", "UTC", 7, False),
        ("09:00", "17:00", "UTC", 12, True),
        ("09:00", "17:00", "Asia/Tokyo", 12, False),
        ("", "", "UTC", 12, False),
    ],
)
def test_quiet_hours_may_cross_midnight_and_have_a_time_zone(
    start: str, end: str, zone: str, hour: int, quiet: bool
) -> None:
    hook = Webhook(id="h", url="u", secret="s", quiet_start=start, quiet_end=end, timezone=zone)

    assert hook.is_quiet(at(hour)) is quiet


def test_an_unknown_time_zone_is_named() -> None:
    with pytest.raises(ValueError, match="Mars"):
        zone_of("Mars/Olympus")


@given(attempts=st.integers(1, 10_000), draw=st.floats(0, 0.999), after=st.text(max_size=20))
@example(attempts=1, draw=0.0, after="²")
def test_a_delay_is_bounded_and_ends_with_the_last_attempt(attempts: int, draw: float, after: str) -> None:
    retry = RetryConfig()
    delay = retry_delay(retry, attempts, draw=draw, retry_after=read_retry_after(after, 0.0))

    assert (delay is None) == (attempts >= retry.max_attempts)
    assert delay is None or 0 < delay <= max(retry.max_delay, LONGEST_RETRY_AFTER)


def test_retry_after_is_heeded_and_the_signature_covers_time_id_and_body() -> None:
    assert retry_delay(RetryConfig(), 1, draw=0.0, retry_after=read_retry_after("120", 0.0)) == 120
    assert read_retry_after("Thu, 01 Jan 1970 00:02:00 GMT", 30.0) == 90
    assert [read_retry_after(each, 1e9) for each in ("Thu, 01 Jan 1970 00:02:00 GMT", "soon", "", "-5")] == [0, 0, 0, 0]
    assert (
        len(
            {sign("s", "1", "a", b"x"), sign("s", "2", "a", b"x"), sign("s", "1", "b", b"x"), sign("t", "1", "a", b"x")}
        )
        == 4
    )
