import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import CircuitBreaker
from toolreeve.execution.breaker import Breaker, BreakerState, counts_as_failure

SETTINGS = CircuitBreaker(failure_threshold=3, recovery_timeout=60, monitoring_period=30)


def fail(breaker: Breaker, *moments: float) -> None:
    for now in moments:
        breaker.leave(breaker.enter(now), now, failed=True, completed=True)


def opened() -> Breaker:
    """A breaker that opened at 2."""
    breaker = Breaker(SETTINGS)
    fail(breaker, 0, 1, 2)
    return breaker


def refused(breaker: Breaker, now: float) -> ToolError:
    with pytest.raises(ToolError) as raised:
        breaker.enter(now)
    return raised.value


def test_enough_failures_within_the_period_open_it_and_the_refusal_says_for_how_long() -> None:
    refusal = refused(opened(), 12)

    assert refusal.code is ErrorCode.CIRCUIT_OPEN
    assert refusal.message == "circuit breaker open after 3 failures within 30 s; try again in 50.0 s"
    assert refusal.detail == {"retry_after": 50}


def test_failures_further_apart_than_the_period_do_not_open_it() -> None:
    breaker = Breaker(SETTINGS)

    fail(breaker, 0, 20, 40, 60, 80)

    assert breaker.state(80) is BreakerState.CLOSED


def test_after_the_recovery_timeout_one_probe_at_a_time_is_admitted() -> None:
    breaker = opened()

    breaker.enter(62)

    assert breaker.state(62) is BreakerState.HALF_OPEN
    assert "probe call is running" in refused(breaker, 62).message


def test_a_probe_that_succeeds_closes_it_and_forgets_the_failures() -> None:
    breaker = opened()

    breaker.leave(breaker.enter(62), 63, failed=False, completed=True)
    fail(breaker, 64, 65)

    assert breaker.state(65) is BreakerState.CLOSED


def test_a_failed_probe_restarts_the_recovery_timeout() -> None:
    breaker = opened()

    breaker.leave(breaker.enter(62), 70, failed=True, completed=True)

    assert refused(breaker, 129).detail == {"retry_after": 1}
    breaker.enter(130)


def test_a_cancelled_probe_makes_room_for_the_next_one() -> None:
    breaker = opened()

    breaker.leave(breaker.enter(62), 63, failed=False, completed=False)

    assert breaker.state(63) is BreakerState.HALF_OPEN
    breaker.enter(63)


def test_a_call_from_before_the_breaker_opened_does_not_count_for_the_probe() -> None:
    breaker = Breaker(SETTINGS)
    early = breaker.enter(0)
    fail(breaker, 0, 1, 2)
    probe = breaker.enter(62)

    breaker.leave(early, 63, failed=False, completed=True)
    assert breaker.state(63) is BreakerState.HALF_OPEN
    breaker.leave(probe, 64, failed=True, completed=True)
    breaker.leave(early, 65, failed=False, completed=True)

    assert breaker.state(65) is BreakerState.OPEN


@pytest.mark.parametrize("code", ErrorCode)
def test_only_failures_of_the_tool_itself_count(code: ErrorCode) -> None:
    innocent = {
        code
        for code in ErrorCode
        if code.value.endswith(
            ("_NOT_FOUND", "_FORBIDDEN", "_DENIED", "_METHOD", "_DISABLED", "_ALLOWED", "_OPEN", "_UNAVAILABLE")
        )
        or code.value.startswith(("E_INVALID", "E_APPROVAL", "E_PERMISSION", "E_BUDGET", "E_CALC", "E_AUDIT"))
        or code in (ErrorCode.CANCELLED, ErrorCode.RATE_LIMITED, ErrorCode.TOOL_CHANGED, ErrorCode.DENIED)
    }

    assert counts_as_failure(ToolError(code, "")) is (code not in innocent)


def test_a_crash_counts_and_a_cancellation_does_not() -> None:
    assert counts_as_failure(ZeroDivisionError())
    assert not counts_as_failure(asyncio.CancelledError())


def test_a_call_during_a_probe_is_told_to_wait_a_second() -> None:
    breaker = opened()
    breaker.enter(62)

    assert refused(breaker, 62).detail == {"retry_after": 1}


def test_the_wait_is_given_to_the_millisecond() -> None:
    assert refused(opened(), 12.12345).detail == {"retry_after": 49.877}


def test_it_is_open_until_the_very_end_of_its_rest() -> None:
    breaker = opened()

    assert breaker.state(61.5) is BreakerState.OPEN
    assert breaker.state(62) is BreakerState.HALF_OPEN


def test_the_period_is_counted_from_the_first_failure_however_late_it_happens() -> None:
    breaker = Breaker(SETTINGS)

    fail(breaker, 1_000, 1_015, 1_030)

    assert breaker.state(1_030) is BreakerState.OPEN


@pytest.mark.parametrize("threshold", [0, 1])
def test_the_lowest_threshold_is_one_failure(threshold: int) -> None:
    breaker = Breaker(CircuitBreaker(failure_threshold=threshold))

    fail(breaker, 5)

    assert breaker.state(5) is BreakerState.OPEN


def test_by_default_five_failures_in_half_a_minute_mean_a_minute_of_rest() -> None:
    breaker = Breaker(CircuitBreaker())

    fail(breaker, 0, 7, 14, 21)
    assert breaker.state(21) is BreakerState.CLOSED
    fail(breaker, 30)

    assert breaker.state(89.9) is BreakerState.OPEN
    assert breaker.state(90) is BreakerState.HALF_OPEN


class BreakerMachine(RuleBasedStateMachine):
    """Calls begin and end in any order, at any time, with any outcome."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(SETTINGS)
        self.now = 0.0
        self.tickets: list[tuple[int, bool]] = []

    @rule(seconds=st.floats(min_value=0, max_value=50))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_call_begins(self) -> None:
        before = self.breaker.state(self.now)
        try:
            ticket = self.breaker.enter(self.now)
        except ToolError:
            assert before is not BreakerState.CLOSED
            return
        assert before is not BreakerState.OPEN
        self.tickets.append((ticket, before is BreakerState.HALF_OPEN))

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), outcome=st.sampled_from([(True, True), (False, True), (False, False)]))
    def a_call_ends(self, data: st.DataObject, outcome: tuple[bool, bool]) -> None:
        ticket, _ = self.tickets.pop(data.draw(st.integers(min_value=0, max_value=len(self.tickets) - 1)))
        failed, completed = outcome
        before = self.breaker.state(self.now)

        self.breaker.leave(ticket, self.now, failed=failed, completed=completed)

        after = self.breaker.state(self.now)
        if after is BreakerState.OPEN and before is not BreakerState.OPEN:
            assert failed
        if after is BreakerState.CLOSED and before is not BreakerState.CLOSED:
            assert completed
            assert not failed

    @invariant()
    def at_most_one_probe_is_under_way(self) -> None:
        probes = [ticket for ticket, probe in self.tickets if probe]
        assert len(probes) <= 1

    @invariant()
    def it_never_rests_for_ever(self) -> None:
        if not self.tickets:
            assert self.breaker.state(self.now + SETTINGS.recovery_timeout) is not BreakerState.OPEN


TestBreakerMachine = BreakerMachine.TestCase
TestBreakerMachine.settings = settings(max_examples=60, stateful_step_count=40)
