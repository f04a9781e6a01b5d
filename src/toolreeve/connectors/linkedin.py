"""LinkedIn's public job pages: search, and read one job.

Off by default: LinkedIn's terms restrict automated access. Requests are few and slow, and a page that blocks ends the
call; nothing tries to get around it.
"""

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from toolreeve.connectors.api import ApiClient, NoCredential, invalid_parameter
from toolreeve.connectors.catalogue import ServiceUrls
from toolreeve.connectors.linkedin_pages import END_PAGE, JobDetail, is_blocked, parse_cards, parse_detail
from toolreeve.connectors.service_tools import ServiceTools
from toolreeve.core.context import Context
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.labels import UNTRUSTED
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, Arguments
from toolreeve.core.urls import parse_url
from toolreeve.tools.http import object_schema

PAUSE_SECONDS = 3.0
"""Between two requests."""
PAGE = 10
MAX_JOBS = 50
_SEARCH = "/jobs-guest/jobs/api/seeMoreJobPostings/search"
_DETAIL = "/jobs-guest/jobs/api/jobPosting/"
_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"
_DAY = 86_400
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_JOB_ID = re.compile(r"/jobs/view/(?:[^/?#]*-)?(\d{1,20})(?:[/?#]|$)|[?&]currentJobId=(\d{1,20})(?:[&#]|$)")
_PERIODS = {"past month": 30, "past week": 7, "24hr": 1}
"""In days."""
_TYPES = {
    "full time": ("F", "Full-time"),
    "part time": ("P", "Part-time"),
    "contract": ("C", "Contract"),
    "temporary": ("T", "Temporary"),
    "internship": ("I", "Internship"),
}
_PLACES = {"on site": "1", "remote": "2", "hybrid": "3"}
_LEVELS = {
    "internship": ("1", "Internship"),
    "entry level": ("2", "Entry level"),
    "associate": ("3", "Associate"),
    "senior": ("4", "Mid-Senior level"),
    "director": ("5", "Director"),
    "executive": ("6", "Executive"),
}


def new_tools(urls: ServiceUrls) -> Sequence[AnyFunctionTool]:
    client = ApiClient(
        title="LinkedIn",
        base=urls.linkedin,
        credential=NoCredential(),
        remedy="its guest pages need no login, so it blocks this machine; try again in an hour",
        # In another language the criteria of a job could not be compared with the filters.
        extra_headers={"user-agent": _AGENT, "accept": "text/html", "accept-language": "en-US,en;q=0.9"},
    )
    service = ServiceTools("linkedin", "web", urls.linkedin)

    @service.tool(
        timeout=300,
        screen=_check_limit,
        input_schema=object_schema(
            ["keyword"],
            keyword={"type": "string", "minLength": 1},
            location={"type": "string", "default": ""},
            dateSincePosted={"enum": [*_PERIODS, ""], "default": ""},
            jobType={"enum": [*_TYPES, ""], "default": ""},
            remoteFilter={"enum": [*_PLACES, ""], "default": ""},
            experienceLevel={"enum": [*_LEVELS, ""], "default": ""},
            limit={"type": "string", "default": "10", "description": f"How many jobs, as a number up to {MAX_JOBS}."},
            sortBy={"enum": ["recent", "relevant"], "default": "relevant"},
        ),
    )
    async def linkedin_jobs(
        ctx: Context,
        keyword: str,
        location: str = "",
        dateSincePosted: str = "",
        jobType: str = "",
        remoteFilter: str = "",
        experienceLevel: str = "",
        limit: str = "10",
        sortBy: str = "relevant",
    ) -> Output:
        """Search LinkedIn's public job postings: title, company, location, date, salary and URL of each."""
        filters = {"jobType": jobType, "remoteFilter": remoteFilter, "experienceLevel": experienceLevel}
        params = {
            "keywords": keyword,
            "location": location or None,
            "f_TPR": f"r{_PERIODS[dateSincePosted] * _DAY}" if dateSincePosted else None,
            "f_JT": _TYPES[jobType][0] if jobType else None,
            "f_WT": _PLACES.get(remoteFilter),
            "f_E": _LEVELS[experienceLevel][0] if experienceLevel else None,
            "sortBy": "DD" if sortBy == "recent" else "R",
        }
        wanted = {name: value for name, value in filters.items() if value}
        since = _first_day(ctx.now(), dateSincePosted)
        jobs = await _search(client, ctx, params, wanted, since, _read_limit({"limit": limit}))
        data: dict[str, Any] = {"jobs": jobs, "count": len(jobs), "checkedFromDetails": list(wanted)}
        if since:
            data["checkedFromCards"] = ["dateSincePosted"]
        return Output(data=data, labels=UNTRUSTED)

    @service.tool(
        screen=_check_url,
        input_schema=object_schema(["url"], url={"type": "string", "description": "Of a job on linkedin.com."}),
    )
    async def linkedin_job_detail(ctx: Context, url: str) -> Output:
        """Read a job posting on LinkedIn: title, company, location and the whole description."""
        job = _job_id(url)
        detail = await _detail(client, ctx, job)
        data = {
            "title": detail.title,
            "company": detail.company,
            "location": detail.location,
            "salary": detail.salary,
            "criteria": detail.criteria,
            "description": detail.description,
            "url": f"https://www.linkedin.com/jobs/view/{job}",
        }
        return Output(data=data, labels=UNTRUSTED)

    return linkedin_jobs, linkedin_job_detail


def _check_limit(args: Arguments, _: Context) -> None:
    _read_limit(args)


def _check_url(args: Arguments, _: Context) -> None:
    _job_id(str(args["url"]))


async def _search(
    client: ApiClient, ctx: Context, params: dict[str, Any], filters: dict[str, str], since: str, limit: int
) -> list[dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = {}
    for start in range(0, 10 * MAX_JOBS, PAGE):
        cards = await _page(client, ctx, {**params, "start": start})
        for card in cards:
            is_dated = bool(_DATE.fullmatch(card["date"]))
            if card["id"] in jobs or (is_dated and card["date"] < since):
                continue
            if found := await _filtered(client, ctx, card, filters):
                if since and not is_dated:
                    found["unverified"] = ["dateSincePosted", *found.get("unverified", ())]
                jobs[card["id"]] = found
            if len(jobs) == limit:
                return list(jobs.values())
        if len(cards) < PAGE:
            break
        await asyncio.sleep(PAUSE_SECONDS)
    return list(jobs.values())


async def _page(client: ApiClient, ctx: Context, params: dict[str, Any]) -> list[dict[str, str]]:
    """The cards of one page; none at the end. Raises ToolError(UPSTREAM) if LinkedIn blocks."""
    reply = await client.fetch(ctx, _SEARCH, params)
    text = reply.text()
    cards = [] if is_blocked(reply) else parse_cards(text)
    is_end = not text.strip() or (text.strip() == END_PAGE and params["start"] > 0)
    if not cards and not is_end:
        raise _blocked()
    return cards


async def _filtered(
    client: ApiClient, ctx: Context, card: dict[str, str], filters: dict[str, str]
) -> dict[str, Any] | None:
    """The card if its details satisfy the filters that the search page may ignore; `unverified` names those that the
    details say nothing about."""
    if not filters:
        return dict(card)
    await asyncio.sleep(PAUSE_SECONDS)
    detail = await _detail(client, ctx, card["id"])
    found = {name: _satisfies(detail, name, value) for name, value in filters.items()}
    if False in found.values():
        return None
    unknown = [name for name, verdict in found.items() if verdict is None]
    return {**card, "salary": card["salary"] or detail.salary, **({"unverified": unknown} if unknown else {})}


def _first_day(now: float, period: str) -> str:
    """The oldest date that fits; a card has the day of a posting, in a time zone that it does not name."""
    if not period:
        return ""
    return datetime.fromtimestamp(now - (_PERIODS[period] + 1) * _DAY, UTC).date().isoformat()


def _satisfies(detail: JobDetail, name: str, value: str) -> bool | None:
    """None if the details do not say."""
    if name == "jobType":
        stated = detail.criteria.get("Employment type")
        return None if not stated else stated == _TYPES[value][1]
    if name == "experienceLevel":
        stated = detail.criteria.get("Seniority level")
        return None if not stated or stated == "Not Applicable" else stated == _LEVELS[value][1]
    words = f"{detail.title}\n{detail.location}\n{detail.description}".lower().replace("on-site", "on site")
    named = [place for place in _PLACES if place in words]
    return value in named if named else None


async def _detail(client: ApiClient, ctx: Context, job: str) -> JobDetail:
    reply = await client.fetch(ctx, f"{_DETAIL}{job}")
    detail = parse_detail(reply.text())
    if is_blocked(reply) or not (detail.title or detail.description):
        raise _blocked()
    return detail


def _job_id(url: str) -> str:
    """The posting that a LinkedIn URL names; only its number is used. Raises ToolError."""
    host = parse_url(url).host
    found = _JOB_ID.search(url)
    if found is None or not (host == "linkedin.com" or host.endswith(".linkedin.com")):
        raise invalid_parameter("url", "is not a job on LinkedIn, such as https://www.linkedin.com/jobs/view/123")
    return found[1] or found[2]


def _read_limit(args: Arguments) -> int:
    text = str(args.get("limit", "10"))
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= MAX_JOBS):
        raise invalid_parameter("limit", f"{text[:20]!r} is not a number from 1 to {MAX_JOBS}")
    return int(text)


def _blocked() -> ToolError:
    return ToolError(
        ErrorCode.UPSTREAM,
        "LinkedIn shows a page without jobs to this machine: it limits automated access; try again in an hour",
        retryable=False,
    )
