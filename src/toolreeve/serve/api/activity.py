"""Endpoints of activity: calls over time, by tool or client, sessions, budget.

A bounded number of the newest calls is read; `whole` says whether that was all of the range. A person's wait is in no
latency.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.record.audit import AuditRecord, Filter, timestamp
from toolreeve.record.journal import CALL
from toolreeve.serve.api.call_rows import CallRow, new_row
from toolreeve.serve.api.endpoint import ApiRequest, Endpoints, Query

MOST_CALLS = 20_000
PAGE = 5_000
BUCKETS = 72
HISTOGRAM_HOURS = 6
RANGES = {"1h": 3_600, "6h": 6 * 3_600, "24h": 86_400, "7d": 7 * 86_400}
Range = Literal["1h", "6h", "24h", "7d"]
activity = Endpoints("activity")


class RangeQuery(Query):
    range: Range = "6h"


GroupedBy = Literal["tool", "client", "server"]


class ActivitySummaryQuery(Query):
    by: GroupedBy
    range: Range = "6h"


class HistogramQuery(Query):
    step: Annotated[int, Field(ge=60, le=3_600, description="Seconds in a bucket.")] = 240


class HistogramBucket(TypedDict):
    t: int
    done: int
    failed: int
    refused: int


class CallHistogram(TypedDict):
    buckets: list[HistogramBucket]


class CallSeries(TypedDict):
    """Lists have a value for each time in `t`; a latency is None where nothing ran. `prompts` are calls that a person
    was asked about, `spent` and `limit` dollars of the budget now, `spent_at` what was spent by then."""

    t: list[int]
    calls: list[int]
    failed: list[int]
    refused: list[int]
    prompts: list[int]
    prompts_per_100: list[float | None]
    p50: list[float | None]
    p95: list[float | None]
    p99: list[float | None]
    total_p95: float | None
    errors: dict[str, int]
    spent: float
    spent_at: list[float]
    limit: float | None
    whole: bool


class CallGroup(TypedDict):
    """`err` and `prompts` are per 100 calls."""

    key: str
    calls: int
    p50: float | None
    p95: float | None
    err: float
    prompts: float


class CallGroups(TypedDict):
    groups: list[CallGroup]
    whole: bool


class SessionRow(TypedDict):
    session: str
    user: str
    client: str
    calls: int
    first: str | None
    last: str | None


class SessionList(TypedDict):
    sessions: list[SessionRow]


class BudgetReport(TypedDict):
    """In dollars; all None without a limit."""

    scope: str | None
    limit: float | None
    spent: float | None
    remaining: float | None


@activity.get("/calls/histogram")
async def show_histogram(request: ApiRequest, query: HistogramQuery) -> CallHistogram:
    """Calls of the last six hours, by time and outcome."""
    now = request.services.now()
    seconds = HISTOGRAM_HOURS * 3_600
    rows, _ = await read_calls(request, now - seconds)
    buckets = _split(rows, now, seconds // query.step, query.step)
    times = _times(now, len(buckets), query.step)
    return {"buckets": [_bucket(time, each) for time, each in zip(times, buckets, strict=True)]}


@activity.get("/metrics/series")
async def show_series(request: ApiRequest, query: RangeQuery) -> CallSeries:
    """Calls, failures, latencies and prompts over time, and the budget now."""
    now = request.services.now()
    step = RANGES[query.range] // BUCKETS
    rows, whole = await read_calls(request, now - RANGES[query.range])
    buckets = _split(rows, now, BUCKETS, step)
    budget = request.services.reeve.budget
    return {
        "t": _times(now, BUCKETS, step),
        "calls": [len(each) for each in buckets],
        "failed": [_count(each, "failed") for each in buckets],
        "refused": [_count(each, "refused") for each in buckets],
        "prompts": [_prompts(each) for each in buckets],
        "prompts_per_100": [_percent(_prompts(each), len(each)) if each else None for each in buckets],
        "p50": [percentile(_durations(each), 0.5) for each in buckets],
        "p95": [percentile(_durations(each), 0.95) for each in buckets],
        "p99": [percentile(_durations(each), 0.99) for each in buckets],
        "total_p95": percentile(_durations(rows), 0.95),
        "errors": dict(Counter(row["code"] for row in rows if _is_error(row)).most_common(20)),
        "spent": 0.0 if budget is None else budget.spent,
        "spent_at": _spent_at(buckets, 0.0 if budget is None else budget.spent),
        "limit": None if budget is None else budget.limit,
        "whole": whole,
    }


@activity.get("/metrics/summary")
async def show_summary(request: ApiRequest, query: ActivitySummaryQuery) -> CallGroups:
    """Calls, latencies, failures and prompts by tool or client, the busiest first."""
    rows, whole = await read_calls(request, request.services.now() - RANGES[query.range])
    members: dict[str, list[CallRow]] = {}
    for row in rows:
        members.setdefault(_key(row, query.by), []).append(row)
    found = sorted(members.items(), key=lambda each: len(each[1]), reverse=True)
    return {"groups": [_group(key, each) for key, each in found[:50]], "whole": whole}


@activity.get("/sessions")
async def list_sessions(request: ApiRequest) -> SessionList:
    """The sessions of the last thousand calls, the last used first."""
    records = await request.services.reeve.audit.list(request.view.narrow(Filter(kind=CALL)), limit=1000)
    counts = Counter(str(each.body.get("session")) for each in records)
    last = {str(each.body.get("session")): each for each in reversed(records)}
    first = {str(each.body.get("session")): each for each in records}
    rows: list[SessionRow] = [
        {
            "session": name,
            "user": str(last[name].body.get("user") or ""),
            "client": str(last[name].body.get("client") or ""),
            "calls": count,
            "first": timestamp(first[name].body.get("ts")),
            "last": timestamp(last[name].body.get("ts")),
        }
        for name, count in counts.items()
    ]
    return {"sessions": sorted(rows, key=lambda row: row["last"] or "", reverse=True)}


@activity.get("/budget")
async def show_budget(request: ApiRequest) -> BudgetReport:
    """What may be spent, and what has been."""
    budget = request.services.reeve.budget
    if budget is None:
        return {"scope": None, "limit": None, "spent": None, "remaining": None}
    return {"scope": budget.scope, "limit": budget.limit, "spent": budget.spent, "remaining": budget.remaining}


async def read_calls(request: ApiRequest, since: float) -> tuple[list[CallRow], bool]:
    """The calls since then, newest first, and whether these are all."""
    wanted = request.view.narrow(Filter(kind=CALL, since=since))
    found: list[AuditRecord] = []
    before: int | None = None
    while len(found) < MOST_CALLS:
        page = await request.services.reeve.audit.list(wanted, limit=PAGE, before=before)
        found += page
        if len(page) < PAGE:
            return [new_row(each, visible=False) for each in found], True
        before = page[-1].seq
    return [new_row(each, visible=False) for each in found], False


def _key(row: CallRow, by: GroupedBy) -> str:
    """What does not say which client it is, is known by where it came from."""
    return row[by] or (row["origin"] if by == "client" else "")


def _split(rows: Iterable[CallRow], now: float, count: int, step: int) -> list[list[CallRow]]:
    """By time, oldest first; what is older than the first bucket is left out."""
    buckets: list[list[CallRow]] = [[] for _ in range(count)]
    for row in rows:
        at = _seconds(row)
        index = count - 1 - int((now - at) // step)
        if 0 <= index < count:
            buckets[index].append(row)
    return buckets


def _seconds(row: CallRow) -> float:
    return datetime.fromisoformat(row["at"]).timestamp() if row["at"] else 0.0


def _times(now: float, count: int, step: int) -> list[int]:
    """When each bucket ends."""
    return [round(now) - step * (count - 1 - index) for index in range(count)]


def _bucket(time: int, rows: Sequence[CallRow]) -> HistogramBucket:
    return {
        "t": time,
        "done": _count(rows, "done"),
        "failed": _count(rows, "failed"),
        "refused": _count(rows, "refused"),
    }


def _group(key: str, rows: Sequence[CallRow]) -> CallGroup:
    return {
        "key": key,
        "calls": len(rows),
        "p50": percentile(_durations(rows), 0.5),
        "p95": percentile(_durations(rows), 0.95),
        "err": _percent(sum(map(_is_error, rows)), len(rows)),
        "prompts": _percent(_prompts(rows), len(rows)),
    }


def _count(rows: Iterable[CallRow], outcome: str) -> int:
    return sum(row["outcome"] == outcome for row in rows)


def _spent_at(buckets: Sequence[Sequence[CallRow]], now: float) -> list[float]:
    """What was spent at the end of each bucket, counted back from what is spent now."""
    levels = []
    for rows in reversed(buckets):
        levels.append(round(max(0.0, now), 6))
        now -= sum(row["cost"] for row in rows)
    return levels[::-1]


def _is_error(row: CallRow) -> bool:
    return row["outcome"] not in ("done", "waiting")


def _prompts(rows: Iterable[CallRow]) -> int:
    return sum(row["wait_ms"] > 0 for row in rows)


def _percent(part: int, of: int) -> float:
    return round(100 * part / of, 2)


def _durations(rows: Iterable[CallRow]) -> list[float]:
    return [row["duration_ms"] for row in rows if row["attempts"]]


def percentile(values: list[float], share: float) -> float | None:
    """By the nearest rank; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * share) - 1)]
