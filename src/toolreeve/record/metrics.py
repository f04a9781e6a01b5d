"""Prometheus metrics: counters, histograms and gauges in plain dictionaries.

Counting costs a call less than a microsecond; everything else happens on collection. Names come from outside, so their
number is bounded: tools beyond the bound share one label, and so do unknown names.
"""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client.core import Metric

BUCKETS = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0)
APPROVAL_BUCKETS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
MAX_NAMES = 2_000
UNKNOWN = "(unknown)"
OTHER = "(other)"
BREAKER_STATES = {"closed": 0, "half_open": 1, "open": 2}

Gauge = Callable[[], float]
LabelledGauge = Callable[[], Mapping[str, float]]


class _Histogram:
    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative, as Prometheus expects."""
        cumulative = []
        total = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            cumulative.append((bound, float(total)))
        return cumulative


class Metrics:
    """`breakers` returns the state of every circuit breaker: closed, half_open or open. At most `names` tools get
    their own label."""

    def __init__(self, breakers: Callable[[], Mapping[str, str]] | None = None, *, names: int = MAX_NAMES) -> None:
        self._names = names
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._durations: dict[str, _Histogram] = {}
        self._approvals: Counter[str] = Counter()
        self._approval_wait = _Histogram(APPROVAL_BUCKETS)
        self._cache: Counter[tuple[str, str]] = Counter()
        self._gauges: dict[str, tuple[str, Gauge]] = {}
        self._totals: dict[str, tuple[str, Gauge]] = {}
        self._labelled: dict[str, tuple[str, str, LabelledGauge]] = {}
        self._breakers = breakers
        self._in_flight = 0

    def started(self) -> None:
        with self._lock:
            self._in_flight += 1

    def executed(self, tool: str, code: str, seconds: float) -> None:
        """A started call ended: `code` is empty for a success, `tool` for an unknown name."""
        with self._lock:
            self._in_flight -= 1
            durations = self._durations.get(tool)
            if durations is None:
                tool, durations = self._introduce(tool)
            self._calls[tool, code] += 1
            durations.observe(seconds)

    def approved(self, outcome: str, seconds: float) -> None:
        """An approval was settled after `seconds`: granted, denied, timeout, …"""
        with self._lock:
            self._approvals[outcome] += 1
            self._approval_wait.observe(seconds)

    def cached(self, tool: str, outcome: str) -> None:
        """A cache lookup: hit or miss."""
        with self._lock:
            key = (tool, outcome)
            if key not in self._cache and len(self._cache) >= self._names:
                key = (OTHER, outcome)
            self._cache[key] += 1

    def watch(self, name: str, meaning: str, read: Gauge) -> None:
        """Export a value kept elsewhere. A name that ends in `_total` is a counter, any other a gauge."""
        group = self._totals if name.endswith("_total") else self._gauges
        group[name] = (meaning, read)

    def watch_each(self, name: str, meaning: str, label: str, read: LabelledGauge) -> None:
        """As `watch`, with a value for each of some labels; beyond the bound of names they are left out."""
        self._labelled[name] = (meaning, label, read)

    def render(self) -> str:
        """Everything in the Prometheus text format."""
        from prometheus_client import CollectorRegistry, generate_latest

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry).decode()

    def collect(self) -> Iterator["Metric"]:
        """For a registry of prometheus_client."""
        with self._lock:
            families = [*self._call_families(), *self._other_families()]
        yield from families

    def _introduce(self, tool: str) -> tuple[str, _Histogram]:
        name = tool or UNKNOWN
        if len(self._durations) >= self._names:
            name = OTHER
        return name, self._durations.setdefault(name, _Histogram(BUCKETS))

    def _call_families(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        calls = CounterMetricFamily(
            "toolreeve_tool_execution", "Calls that ended.", labels=("tool_name", "success", "error_code")
        )
        for (tool, code), count in self._calls.items():
            calls.add_metric((tool, "false" if code else "true", code), count)
        durations = HistogramMetricFamily(
            "toolreeve_tool_execution_duration_seconds", "Time from request to result.", labels=("tool_name",)
        )
        for tool, histogram in self._durations.items():
            durations.add_metric((tool,), histogram.buckets(), histogram.total)
        yield calls
        yield durations

    def _other_families(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        yield _family(CounterMetricFamily, "toolreeve_approvals", "Approvals settled.", ("outcome",), self._approvals)
        wait = HistogramMetricFamily("toolreeve_approval_wait_seconds", "Time until an approval was settled.")
        wait.add_metric((), self._approval_wait.buckets(), self._approval_wait.total)
        yield wait
        yield _family(CounterMetricFamily, "toolreeve_cache", "Cache lookups.", ("tool_name", "outcome"), self._cache)
        yield GaugeMetricFamily("toolreeve_calls_in_flight", "Calls on the road.", value=self._in_flight)
        states = {} if self._breakers is None else self._breakers()
        levels = {tool: BREAKER_STATES[state] for tool, state in states.items()}
        yield _family(
            GaugeMetricFamily, "toolreeve_breaker_state", "0 closed, 1 half open, 2 open.", ("tool_name",), levels
        )
        for name, (meaning, read) in self._gauges.items():
            yield GaugeMetricFamily(name, meaning, value=read())
        for name, (meaning, label, read_each) in self._labelled.items():
            values = dict(list(read_each().items())[: self._names])
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield _family(kind, name.removesuffix("_total"), meaning, (label,), values)
        for name, (meaning, read) in self._totals.items():
            yield CounterMetricFamily(name.removesuffix("_total"), meaning, value=read())


def _family(
    kind: Callable[..., Any], name: str, meaning: str, labels: tuple[str, ...], values: Mapping[Any, float]
) -> Any:
    family = kind(name, meaning, labels=labels)
    for key, value in values.items():
        family.add_metric(key if isinstance(key, tuple) else (key,), value)
    return family
