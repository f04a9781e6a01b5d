"""Google Calendar: list, read and create events.

An event with attendees is an invitation: each of them is an effect of its own. What an event says is untrusted, since
anybody may invite the user, and private.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from toolreeve.connectors.api import PRIVATE, objects
from toolreeve.connectors.catalogue import ServiceUrls
from toolreeve.connectors.event_times import day_bounds, event_times, instant
from toolreeve.connectors.google_account import CALENDAR, GoogleAccount, google_client
from toolreeve.connectors.outgoing_mail import all_recipients, read_addresses
from toolreeve.connectors.service_tools import ServiceTools
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, Arguments
from toolreeve.core.urls import encode_segment
from toolreeve.tools.http import object_schema

MAX_RESULTS = 250
_CALENDAR = {
    "type": "string",
    "default": "primary",
    "minLength": 1,
    "x-authority": "object",
    "description": "The id of the calendar.",
}
_BOUND = {"type": ["string", "null"], "default": None}
_TEXT = {"type": "string", "default": ""}


def new_tools(urls: ServiceUrls) -> Sequence[AnyFunctionTool]:
    account = GoogleAccount(CALENDAR, urls)
    reading = google_client("Google Calendar", urls.calendar, account, "calendar.events.readonly")
    writing = google_client("Google Calendar", urls.calendar, account, "calendar.events")
    service = ServiceTools("calendar", "calendar", urls.calendar)

    @service.tool(
        input_schema=object_schema(
            [],
            timeMin={**_BOUND, "description": "From when, such as 2026-03-01T09:00 or 2026-03-01; today by default."},
            timeMax={**_BOUND, "description": "Until when; the end of today by default."},
            query={"type": ["string", "null"], "default": None, "description": "Words that the events hold."},
            maxResults={"type": "integer", "minimum": 1, "maximum": MAX_RESULTS, "default": 10},
            calendarId=_CALENDAR,
        ),
    )
    async def calendar_list_events(
        ctx: Context,
        timeMin: str | None = None,
        timeMax: str | None = None,
        query: str | None = None,
        maxResults: int = 10,
        calendarId: str = "primary",
    ) -> Output:
        """List events of a calendar in order of their start; recurring ones each time they happen."""
        first, last = day_bounds(ctx.now())
        params = {
            "timeMin": instant(timeMin, "timeMin") if timeMin else first,
            "timeMax": instant(timeMax, "timeMax", end=True) if timeMax else last,
            "q": query,
            "maxResults": maxResults,
            "singleEvents": "true",
            "orderBy": "startTime",
        }
        found = await reading.get_object(ctx, _events(calendarId), params)
        events = [_summary(each) for each in objects(found, "items")]
        data: dict[str, Any] = {"events": events, "count": len(events), "timeZone": _value(found, "timeZone")}
        if found.get("nextPageToken"):
            data["more"] = True
        return Output(data=data, labels=PRIVATE)

    @service.tool(
        input_schema=object_schema(
            ["eventId"], eventId={"type": "string", "minLength": 1, "maxLength": 1024}, calendarId=_CALENDAR
        ),
    )
    async def calendar_get_event(ctx: Context, eventId: str, calendarId: str = "primary") -> Output:
        """Read an event: times, description, attendees with their responses, conference link and recurrence."""
        found = await reading.get_object(ctx, f"{_events(calendarId)}/{encode_segment(eventId)}")
        return Output(data=_detail(found), labels=PRIVATE)

    @service.tool(
        danger=lambda args: DangerLevel.HIGH if args.get("attendees") else DangerLevel.MEDIUM,
        sends=partial(all_recipients, fields=("attendees",)),
        preview=_preview,
        screen=lambda args, _: _check(args),
        input_schema=object_schema(
            ["summary", "start", "end"],
            summary={"type": "string", "minLength": 1, "maxLength": 1024},
            start={"type": "string", "description": "2026-03-01T09:00, or 2026-03-01 for a whole day."},
            end={"type": "string", "description": "As start; of whole days, the day after the last one."},
            description=_TEXT,
            location=_TEXT,
            attendees={**_TEXT, "x-authority": "destination", "description": "Mail addresses, separated by commas."},
            calendarId=_CALENDAR,
            timeZone={"type": ["string", "null"], "default": None, "description": "An IANA name; the machine's own."},
        ),
    )
    async def calendar_create_event(
        ctx: Context,
        summary: str,
        start: str,
        end: str,
        description: str = "",
        location: str = "",
        attendees: str = "",
        calendarId: str = "primary",
        timeZone: str | None = None,
    ) -> Output:
        """Create an event, and send invitations to its attendees."""
        event: dict[str, Any] = {"summary": summary, **event_times(start, end, timeZone)}
        event |= {key: value for key, value in (("description", description), ("location", location)) if value}
        invited = read_addresses(attendees, "attendees")
        if invited:
            event["attendees"] = [{"email": address} for address in invited]
        made = await writing.post(ctx, _events(calendarId), event, {"sendUpdates": "all" if invited else "none"})
        keys = ("id", "summary", "start", "end", "htmlLink")
        return Output(data={key: _value(made, key) for key in keys} | {"invited": list(invited)}, labels=PRIVATE)

    return calendar_list_events, calendar_get_event, calendar_create_event


def _events(calendar: str) -> str:
    return f"/calendar/v3/calendars/{encode_segment(calendar)}/events"


def _check(args: Arguments) -> None:
    """Raises ToolError(INVALID_PARAMS)."""
    event_times(str(args["start"]), str(args["end"]), args.get("timeZone"))
    read_addresses(str(args.get("attendees") or ""), "attendees")


def _preview(args: Arguments) -> str:
    """The invitation as its attendees will see it. Raises ToolError(INVALID_PARAMS)."""
    times = event_times(str(args["start"]), str(args["end"]), args.get("timeZone"))
    invited = read_addresses(str(args.get("attendees") or ""), "attendees")
    lines = [
        f"Event: {args['summary']}",
        f"When: {_when(times['start'])} to {_when(times['end'])}",
        f"Where: {args['location']}" if args.get("location") else "",
        f"Invitations to: {', '.join(invited)}" if invited else "No invitations.",
    ]
    description = str(args.get("description") or "")
    return "\n".join((*filter(None, lines), *(("", description) if description else ())))


def _when(time: Any) -> str:
    """A whole day is a date, any other time has its offset or zone."""
    found = time if isinstance(time, Mapping) else {}
    zone = found.get("timeZone")
    return str(found.get("dateTime") or found.get("date") or "") + (f" ({zone})" if zone else "")


def _value(event: Mapping[str, Any], key: str) -> str:
    found = event.get(key)
    if key in ("start", "end"):
        return _when(found)
    return found if isinstance(found, str) else ""


def _person(event: Mapping[str, Any], key: str) -> str:
    found = event.get(key)
    return str(found.get("email") or found.get("displayName") or "") if isinstance(found, Mapping) else ""


def _summary(event: Mapping[str, Any]) -> dict[str, Any]:
    start = event.get("start")
    return {
        **{key: _value(event, key) for key in ("id", "summary", "start", "end", "location", "status")},
        "allDay": isinstance(start, Mapping) and "date" in start,
        "organizer": _person(event, "organizer"),
    }


def _detail(event: Mapping[str, Any]) -> dict[str, Any]:
    rules = event.get("recurrence")
    return {
        **_summary(event),
        "description": _readable(_value(event, "description")),
        "creator": _person(event, "creator"),
        "attendees": [_attendee(each) for each in objects(event, "attendees")],
        "conferenceLink": _conference(event),
        "recurrence": [str(each) for each in rules] if isinstance(rules, list) else [],
        "htmlLink": _value(event, "htmlLink"),
    }


def _readable(description: str) -> str:
    """Google stores descriptions as HTML if they were written in its editor."""
    if "<" not in description:
        return description
    from toolreeve.tools.html import html_to_text

    return html_to_text(description, visible_only=True)


def _attendee(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "email": str(found.get("email") or ""),
        "name": str(found.get("displayName") or ""),
        "response": str(found.get("responseStatus") or ""),
        "optional": found.get("optional") is True,
    }


def _conference(event: Mapping[str, Any]) -> str:
    if link := _value(event, "hangoutLink"):
        return link
    for each in objects(event.get("conferenceData"), "entryPoints"):
        if each.get("entryPointType") == "video":
            return str(each.get("uri") or "")
    return ""
