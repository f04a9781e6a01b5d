from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.limits import RateLimit
from toolreeve.record.rate import EXACT, admit

GAPS = st.lists(st.floats(min_value=0, max_value=20), max_size=120)


def admitted(limit: RateLimit, moments: list[float]) -> list[float]:
    state, through = b"", []
    for now in moments:
        state, wait = admit(state, now, limit)
        if wait == 0:
            through.append(now)
    return through


def at(gaps: list[float], start: float = 1.7e9) -> list[float]:
    moments = []
    for gap in gaps:
        start += gap
        moments.append(start)
    return moments


def assert_no_window_holds_more(moments: list[float], limit: RateLimit) -> None:
    for first, beyond in zip(moments, moments[limit.calls :], strict=False):
        assert beyond >= first + limit.per


@given(calls=st.integers(min_value=1, max_value=8), per=st.floats(min_value=0.5, max_value=60), gaps=GAPS)
def test_no_window_of_any_position_holds_more_than_the_limit(calls: int, per: float, gaps: list[float]) -> None:
    limit = RateLimit(calls=calls, per=per)

    assert_no_window_holds_more(admitted(limit, at(gaps)), limit)


@given(gaps=st.lists(st.floats(min_value=0, max_value=0.5), min_size=150, max_size=250))
def test_no_window_holds_more_than_a_limit_too_large_to_remember_each_call(gaps: list[float]) -> None:
    limit = RateLimit(calls=EXACT + 6, per=10)

    assert_no_window_holds_more(admitted(limit, at(gaps)), limit)


@given(calls=st.integers(min_value=1, max_value=200), gaps=GAPS, last=st.floats(min_value=0, max_value=5))
def test_a_caller_that_waits_as_long_as_required_is_admitted(calls: int, gaps: list[float], last: float) -> None:
    limit = RateLimit(calls=calls, per=7)
    state = b""
    now = 1.7e9
    for gap in [*gaps, last]:
        now += gap
        state, _ = admit(state, now, limit)

    state, wait = admit(state, now, limit)

    assert 0 <= wait <= 7.01
    if wait:
        assert admit(state, now + wait, limit)[1] == 0


def test_a_whole_burst_goes_through_and_the_next_waits_for_the_first_to_leave_the_window() -> None:
    limit = RateLimit(calls=3, per=60)
    state = b""
    for now in (100.0, 110.0, 120.0):
        state, wait = admit(state, now, limit)
        assert wait == 0

    _, wait = admit(state, 130.0, limit)

    assert round(wait, 3) == 30


def test_the_state_stays_small_however_large_the_limit() -> None:
    limit = RateLimit(calls=100_000, per=3600)
    state = b""
    for second in range(3000):
        state, wait = admit(state, 1.7e9 + second, limit)
        assert wait == 0

    assert len(state) <= 12 * (EXACT + 1)


def test_a_clock_that_was_set_back_blocks_no_caller_longer_than_two_windows() -> None:
    limit = RateLimit(calls=1, per=60)
    state, _ = admit(b"", 1_000_000, limit)

    state, wait = admit(state, 5_000, limit)

    assert wait <= 61
    assert admit(state, 5_000 + wait, limit)[1] == 0


def test_a_limit_that_was_lowered_counts_what_was_admitted_before() -> None:
    state = b""
    for now in (0.0, 1.0, 2.0, 3.0):
        state, _ = admit(state, now, RateLimit(calls=4, per=10))

    _, wait = admit(state, 4.0, RateLimit(calls=2, per=10))

    assert round(wait, 3) == 8


def test_a_limit_of_no_calls_admits_none() -> None:
    assert admit(b"", 0.0, RateLimit(calls=0, per=1))[1] == float("inf")
