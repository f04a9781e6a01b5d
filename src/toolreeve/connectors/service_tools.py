"""Declaration of a connector's tools: host, source, category and output schema.

Every tool contacts the service; what it sends to others is an effect for each recipient.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.files import Files
from toolreeve.core.tool import AnyFunctionTool, Arguments, tool
from toolreeve.tools.http import host_of
from toolreeve.tools.output_schemas import (
    BOOLEAN,
    COUNT,
    INTEGER,
    STRING,
    STRINGS,
    Shape,
    by_name,
    each,
    fields,
    nullable,
)

_FOUND_MAIL = fields(id=STRING, date=STRING, **{"from": STRING}, subject=STRING, snippet=STRING)
_ATTACHMENT = fields(filename=STRING, mimeType=STRING, size=COUNT)
_ISSUE: dict[str, Shape] = {
    "number": nullable(INTEGER),
    "kind": STRING,
    "title": STRING,
    "state": STRING,
    "author": STRING,
    "createdAt": STRING,
    "labels": STRINGS,
    "url": STRING,
}
_EVENT: dict[str, Shape] = {
    **dict.fromkeys(("id", "summary", "start", "end", "location", "status", "organizer"), STRING),
    "allDay": BOOLEAN,
}
_JOB = fields(id=STRING, title=STRING, company=STRING, location=STRING, date=STRING, salary=STRING, url=STRING)
OUTPUT_SCHEMAS: Mapping[str, Shape] = {
    "gmail_search": fields(messages=each(_FOUND_MAIL), count=COUNT, query=STRING),
    "gmail_read": fields(
        id=STRING,
        threadId=STRING,
        **{"from": STRING},
        to=STRING,
        cc=STRING,
        replyTo=STRING,
        date=STRING,
        subject=STRING,
        body=STRING,
        html=BOOLEAN,
        attachments=each(_ATTACHMENT),
    ),
    "gmail_send": fields(id=STRING, threadId=STRING, recipients=STRINGS),
    "calendar_list_events": fields(events=each(fields(**_EVENT)), count=COUNT, timeZone=STRING),
    "calendar_get_event": fields(
        **_EVENT,
        description=STRING,
        creator=STRING,
        attendees=each(fields(email=STRING, name=STRING, response=STRING)),
        conferenceLink=STRING,
        recurrence=STRINGS,
        htmlLink=STRING,
    ),
    "calendar_create_event": fields(
        id=STRING, summary=STRING, start=STRING, end=STRING, htmlLink=STRING, invited=STRINGS
    ),
    "anthropic_usage": fields(
        report_type=STRING,
        source=STRING,
        summary=fields(totals=by_name(INTEGER), top=each(fields(group=STRING, value=STRING))),
        data=each({"type": "object"}),
        count=COUNT,
    ),
    "github_list_issues": fields(issues=each(fields(**_ISSUE)), count=COUNT),
    "github_read_issue": fields(**_ISSUE, body=STRING, comments=each(fields(author=STRING, at=STRING, body=STRING))),
    "github_comment": fields(id=nullable(INTEGER), url=STRING),
    "linkedin_jobs": fields(jobs=each(_JOB), count=COUNT, checkedFromDetails=STRINGS),
    "linkedin_job_detail": fields(
        title=STRING,
        company=STRING,
        location=STRING,
        salary=STRING,
        criteria=by_name(STRING),
        description=STRING,
        url=STRING,
    ),
}
"""Fields named here are always present; a tool may add others."""


class ServiceTools:
    """The tools of one connector. `url` is the address of its service."""

    def __init__(self, connector: str, category: str, url: str) -> None:
        self._source = f"connectors.{connector}"
        self._category = category
        self._host = host_of(url)

    def tool(
        self, *, sends: Callable[[Arguments], Iterable[str]] | None = None, **more: Any
    ) -> Callable[[Callable[..., Any]], AnyFunctionTool]:
        """As `core.tool.tool`; SAFE by default. `sends` gives the recipients; none is the service itself."""

        def effects(args: Arguments, _: Files) -> Sequence[Effect]:
            sent = () if sends is None else tuple(sends(args)) or (self._host,)
            return Effect(EffectKind.NET, self._host), *(Effect(EffectKind.SEND, to) for to in sent)

        def declare(function: Callable[..., Any]) -> AnyFunctionTool:
            given = {"danger": DangerLevel.SAFE, **more}
            output = OUTPUT_SCHEMAS[function.__name__]
            declared: AnyFunctionTool = tool(
                category=self._category, source=self._source, effects=effects, output_schema=output, **given
            )(function)
            return declared

        return declare
