"""Times of calendar events: whole days, instants with offsets, time zones.

A time without an offset is in the given zone, or in the machine's own.
"""

import re
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from toolreeve.connectors.api import invalid_parameter

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def day_bounds(now: float) -> tuple[str, str]:
    """The start of today and of tomorrow, where the machine is."""
    today = datetime.fromtimestamp(now).date()
    return _midnight(today), _midnight(today + timedelta(days=1))


def instant(text: str, parameter: str, *, end: bool = False) -> str:
    """An RFC 3339 time. A date is the start of that day; as an `end` the start of the next. Raises ToolError."""
    found = _read(text, parameter)
    if isinstance(found, datetime):
        return found.isoformat() if found.tzinfo else found.astimezone().isoformat()
    return _midnight(found + timedelta(days=1) if end else found)


def event_times(start: str, end: str, zone: str | None = None) -> dict[str, dict[str, str]]:
    """Start and end as the API takes them. Raises ToolError(INVALID_PARAMS)."""
    first = _read(start, "start")
    last = _read(end, "end")
    if isinstance(first, datetime) != isinstance(last, datetime):
        raise invalid_parameter("end", "must be a date like start, or both must be times")
    if isinstance(first, datetime) and isinstance(last, datetime):
        first = _placed(first, zone)
        last = _placed(last, zone)
        if last <= first:
            raise invalid_parameter("end", "is not after start")
        named = {"timeZone": zone} if zone else {}
        return {"start": {"dateTime": first.isoformat(), **named}, "end": {"dateTime": last.isoformat(), **named}}
    if last < first:
        raise invalid_parameter("end", "is before start")
    after = last if last > first else first + timedelta(days=1)
    return {"start": {"date": first.isoformat()}, "end": {"date": after.isoformat()}}


def _placed(moment: datetime, zone: str | None) -> datetime:
    if moment.tzinfo is not None:
        return moment
    if zone is None:
        return moment.astimezone()
    try:
        return moment.replace(tzinfo=ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise invalid_parameter("timeZone", f"{zone[:100]!r} is not an IANA time zone such as Europe/Berlin") from None


def _read(text: str, parameter: str) -> date:
    """A date, or a datetime."""
    stripped = text.strip()
    try:
        if _DATE.fullmatch(stripped):
            return date.fromisoformat(stripped)
        return datetime.fromisoformat(stripped)
    except ValueError:
        problem = f"{text[:60]!r} is not a time such as 2026-03-01T09:00+01:00, or a date such as 2026-03-01"
        raise invalid_parameter(parameter, problem) from None


def _midnight(day: date) -> str:
    return datetime.combine(day, time()).astimezone().isoformat()
