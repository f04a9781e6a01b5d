"""Webhooks: subscriptions, and how deliveries are signed and retried.

Pure, but for the tables. A delivery is stored before it is sent and forgotten after it was acknowledged: at least once,
whatever ends the process in between. Deliveries about one call go out in order.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from toolreeve.core.danger import DangerLevel

LONGEST_RETRY_AFTER = 3600.0
_LEVELS = [level.value for level in DangerLevel]
HIGHEST = len(_LEVELS) - 1
NORMAL = _LEVELS.index("medium")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConfig:
    """Delays are in seconds. With `jitter`, each is between half and all of what back-off gives."""

    max_attempts: int = 5
    initial_delay: float = 1.0
    max_delay: float = 300.0
    multiplier: float = 2.0
    jitter: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """`events` and `without` are kinds of events; no `events` means all. In quiet hours, from `quiet_start` to
    `quiet_end` (HH:MM, in `timezone`), deliveries wait. `task` limits it to one call. `headers` are sent along. Events
    about a call have its danger as their priority, from 0 (safe) to 4 (critical); all others are `NORMAL`."""

    id: str
    url: str
    secret: str = field(repr=False)
    events: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    quiet_start: str = ""
    quiet_end: str = ""
    timezone: str = "UTC"
    task: str = ""
    min_priority: int = 0
    max_priority: int = HIGHEST
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    enabled: bool = True
    retry: RetryConfig = RetryConfig()

    def wants(self, event: str, task: str, priority: int = NORMAL) -> bool:
        if not self.min_priority <= priority <= self.max_priority:
            return False
        if not self.enabled or event in self.without or (self.task and task != self.task):
            return False
        return not self.events or event in self.events

    def is_quiet(self, now: float) -> bool:
        if not self.quiet_start or not self.quiet_end:
            return False
        at = datetime.fromtimestamp(now, zone_of(self.timezone)).time()
        start = time.fromisoformat(self.quiet_start)
        end = time.fromisoformat(self.quiet_end)
        return start <= at < end if start <= end else at >= start or at < end


def priority_of(danger: Any) -> int:
    """Of an event about a call with this danger; `NORMAL` if there is none."""
    return _LEVELS.index(danger) if danger in _LEVELS else NORMAL


def zone_of(name: str) -> Any:
    """Raises ValueError for an unknown time zone."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown time zone {name!r:.60}") from None


def sign(secret: str, timestamp: str, number: str, body: bytes) -> str:
    """HMAC-SHA-256 over `timestamp.id.body`, with the bytes of the body as they are sent."""
    signed = f"{timestamp}.{number}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def retry_delay(retry: RetryConfig, attempts: int, *, draw: float, retry_after: float = 0.0) -> float | None:
    """Seconds until the next attempt, after so many; None if that was the last. `draw` is from [0, 1)."""
    if attempts >= retry.max_attempts:
        return None
    delay = min(retry.initial_delay * retry.multiplier ** min(attempts - 1, 64), retry.max_delay)
    if retry.jitter:
        delay *= 0.5 + draw / 2
    return max(delay, min(retry_after, LONGEST_RETRY_AFTER))


def read_retry_after(value: str, now: float) -> float:
    """The seconds that a Retry-After header asks for, as a number or a date; 0 for anything else."""
    if value.isascii() and value.isdigit():
        return float(value[:10])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0


class NewDelivery(NamedTuple):
    webhook: str
    event_id: str
    task: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """`state` is pending or dead."""

    id: int
    webhook: str
    event_id: str
    task: str
    body: bytes
    attempts: int
    state: str
    problem: str
    due: float
    created: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "event_id": self.event_id,
            "task_id": self.task,
            "attempts": self.attempts,
            "state": self.state,
            "problem": self.problem,
            "due": self.due,
            "created": self.created,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatistics:
    """`delivered` and `failed` count attempts since the webhook was added."""

    delivered: int = 0
    failed: int = 0
    pending: int = 0
    dead: int = 0
    last_status: int | None = None
    last_at: float | None = None


class WebhookTable(Protocol):
    """Each method is one transaction."""

    async def put(self, webhook: Webhook, *, now: float) -> None: ...

    async def list(self) -> Sequence[Webhook]: ...

    async def delete(self, number: str) -> bool:
        """With its deliveries."""
        ...

    async def cursor(self, source: str) -> int | None:
        """Up to where events of this source have become deliveries; None at the very first time."""
        ...

    async def enqueue(
        self, source: str, *, before: int | None, after: int, deliveries: Sequence[NewDelivery], now: float
    ) -> bool:
        """Advance the cursor from `before` to `after` with these deliveries; False if another process was faster."""
        ...

    async def claim(self, webhook: str, *, now: float, lease: float) -> Delivery | None:
        """The next delivery that is due and that no earlier one of its task precedes, leased for `lease` seconds."""
        ...

    async def delivered(self, delivery: Delivery, *, status: int, now: float) -> None: ...

    async def failed(
        self, delivery: Delivery, *, status: int | None, problem: str, due: float | None, now: float
    ) -> None:
        """Without `due`, it is dead."""
        ...

    async def deliveries(self, webhook: str, *, state: str, limit: int) -> Sequence[Delivery]: ...

    async def replay(self, webhook: str, *, number: int | None, now: float) -> int:
        """Make dead deliveries pending again; returns how many."""
        ...

    async def statistics(self) -> Mapping[str, DeliveryStatistics]: ...
