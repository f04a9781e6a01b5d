"""Measurement against a baseline in alternating rounds, by percentiles."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

ROUNDS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. `ratio` is against the baseline; `target` is the promise, `met` whether it is kept."""

    name: str
    value: str
    ratio: float | None = None
    p50: float | None = None
    p99: float | None = None
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds a call took, by percentile, the median over all rounds."""

    p50: float
    p99: float


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _sample(rounds: Sequence[Sequence[float]]) -> Sample:
    return Sample(
        p50=statistics.median(percentile(times, 0.50) for times in rounds),
        p99=statistics.median(percentile(times, 0.99) for times in rounds),
    )


async def compare(
    baseline: Callable[[], object], contender: Callable[[], Awaitable[object]], *, calls: int = 1500
) -> tuple[Sample, Sample]:
    """Time both in alternating rounds, so that a slow moment of the machine hits both."""
    base_rounds: list[list[float]] = []
    our_rounds: list[list[float]] = []
    clock = time.perf_counter
    for number in range(ROUNDS + 1):
        base: list[float] = []
        ours: list[float] = []
        for _ in range(calls):
            began = clock()
            baseline()
            base.append(clock() - began)
        for _ in range(calls):
            began = clock()
            await contender()
            ours.append(clock() - began)
        if number:  # the first round only warms up
            base_rounds.append(base)
            our_rounds.append(ours)
    return _sample(base_rounds), _sample(our_rounds)


def micros(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"
