import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution.actions import action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import Retry
from toolreeve.execution.retry import delay, may_repeat


def error(code: ErrorCode, *, retryable: bool | None = None) -> ToolError:
    return ToolError(code, "no luck", retryable=retryable)


@pytest.mark.parametrize(
    ("retry", "waits"),
    [
        (Retry(backoff="fixed", initial_delay=2, jitter=False), [2, 2, 2, 2]),
        (Retry(backoff="linear", initial_delay=2, jitter=False), [2, 4, 6, 8]),
        (Retry(backoff="exponential", initial_delay=1, backoff_multiplier=3, jitter=False), [1, 3, 9, 27]),
        (Retry(backoff="exponential", initial_delay=1, max_delay=5, jitter=False), [1, 2, 4, 5]),
    ],
)
def test_the_wait_grows_as_the_back_off_says_and_no_further_than_its_maximum(retry: Retry, waits: list[float]) -> None:
    assert [delay(retry, attempt, 0.5) for attempt in (1, 2, 3, 4)] == waits


@given(
    backoff=st.sampled_from(["fixed", "linear", "exponential"]),
    multiplier=st.floats(min_value=1, max_value=1e10),
    initial=st.floats(min_value=0, max_value=1e6),
    longest=st.floats(min_value=0, max_value=1e6),
    attempt=st.integers(min_value=1, max_value=100_000),
    random=st.floats(min_value=0, max_value=1, exclude_max=True),
)
def test_jitter_stays_between_half_and_the_whole_wait(
    backoff: str, multiplier: float, initial: float, longest: float, attempt: int, random: float
) -> None:
    def settings(*, jitter: bool) -> Retry:
        return Retry(
            backoff=backoff,  # type: ignore[arg-type]
            backoff_multiplier=multiplier,
            initial_delay=initial,
            max_delay=longest,
            jitter=jitter,
        )

    whole = delay(settings(jitter=False), attempt, random)

    assert whole / 2 <= delay(settings(jitter=True), attempt, random) <= whole <= longest


def test_a_read_only_call_is_repeated_after_a_retryable_failure() -> None:
    assert may_repeat(error(ErrorCode.TIMEOUT), action(danger=DangerLevel.SAFE))


def test_a_call_whose_arguments_make_it_safe_is_repeated() -> None:
    assert may_repeat(error(ErrorCode.HTTP_ERROR), action(danger=lambda _: DangerLevel.SAFE))


def test_an_idempotent_call_is_repeated() -> None:
    assert may_repeat(error(ErrorCode.TIMEOUT), action(idempotent=True))


@pytest.mark.parametrize("code", [ErrorCode.TIMEOUT, ErrorCode.TOOL_EXEC, ErrorCode.UPSTREAM, ErrorCode.HTTP_TIMEOUT])
def test_a_call_that_may_have_happened_is_not_repeated_when_that_would_do_it_twice(code: ErrorCode) -> None:
    assert not may_repeat(error(code, retryable=True), action(idempotent=False))


@pytest.mark.parametrize("code", [ErrorCode.RATE_LIMITED, ErrorCode.CIRCUIT_OPEN])
def test_a_call_that_was_refused_before_it_began_is_repeated_whatever_it_does(code: ErrorCode) -> None:
    assert may_repeat(error(code), action(idempotent=False))


def test_a_failure_that_will_come_again_is_not_repeated() -> None:
    assert not may_repeat(error(ErrorCode.INVALID_PARAMS), action(idempotent=True))
    assert not may_repeat(error(ErrorCode.TOOL_EXEC, retryable=False), action(idempotent=True))
