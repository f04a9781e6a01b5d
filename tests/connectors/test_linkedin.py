"""LinkedIn's job pages on the real road, against a local server."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.connectors.connected import Connected
from tests.connectors.linkedin_fragments import card, detail
from tests.network import Answer, Received, web_server
from toolreeve.connectors import linkedin
from toolreeve.connectors.linkedin_pages import END_PAGE
from toolreeve.core.errors import ErrorCode

HTML = {"content-type": "text/html; charset=utf-8"}


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linkedin, "PAUSE_SECONDS", 0)


def site(jobs: int, details: Callable[[int], str] = lambda _: detail()) -> Callable[[Received], Answer]:
    def respond(request: Received) -> Answer:
        target = urlsplit(request.path)
        if target.path.startswith("/jobs-guest/jobs/api/jobPosting/"):
            return Answer(body=details(int(target.path.rpartition("/")[2])).encode(), headers=HTML)
        start = int(parse_qs(target.query)["start"][0])
        cards = "".join(card(number) for number in range(start + 1, min(start + 10, jobs) + 1))
        return Answer(body=(cards or END_PAGE).encode(), headers=HTML)

    return respond


async def call(connected: Connected, respond: Callable[[Received], Answer], tool: str, **args: Any) -> Any:
    async with web_server(respond) as web, connected.reeve(web, "linkedin_*") as reeve:
        return await reeve.call(tool, args), web.received


async def test_pages_are_read_up_to_the_limit(connected: Connected) -> None:
    result, received = await call(connected, site(95), "linkedin_jobs", keyword="python", limit="23", sortBy="recent")

    assert result.success, result.error
    assert result.data["count"] == 23
    assert result.data["jobs"][0] == {
        "id": "1",
        "title": "Engineer",
        "company": "Corp & Co",
        "location": "Berlin",
        "date": "2026-01-02",
        "salary": "",
        "url": "https://www.linkedin.com/jobs/view/1",
    }
    assert len(received) == 3
    query = parse_qs(urlsplit(received[0].path).query)
    assert (query["keywords"], query["sortBy"]) == (["python"], ["DD"])
    assert result.meta.labels[0] == "untrusted"


async def test_a_date_that_the_pages_ignore_is_checked_on_the_cards(connected: Connected) -> None:
    today = datetime.now(UTC).date()
    dates = {1: today, 2: today - timedelta(days=1), 3: today - timedelta(days=9), 4: "", 5: "soon"}
    page = "".join(card(number, date=str(date)) for number, date in dates.items())

    def respond(_: Received) -> Answer:
        return Answer(body=page.encode(), headers=HTML)

    result, received = await call(connected, respond, "linkedin_jobs", keyword="python", dateSincePosted="24hr")

    assert parse_qs(urlsplit(received[0].path).query)["f_TPR"] == ["r86400"]
    assert [each["id"] for each in result.data["jobs"]] == ["1", "2", "4", "5"]
    assert [each.get("unverified") for each in result.data["jobs"]][2:] == [["dateSincePosted"]] * 2
    assert result.data["checkedFromCards"] == ["dateSincePosted"]


async def test_cards_that_are_links_or_new_are_read_alike(connected: Connected) -> None:
    page = card(1) + card(2, "Link", root="a") + card(3, "New", "€60,000.00 - €70,000.00", new=True) + "<li>\n\n</li>"

    result, received = await call(
        connected, lambda _: Answer(body=page.encode(), headers=HTML), "linkedin_jobs", keyword="python"
    )

    found = [(job["id"], job["title"], job["company"], job["date"], job["salary"]) for job in result.data["jobs"]]
    assert found == [
        ("1", "Engineer", "Corp & Co", "2026-01-02", ""),
        ("2", "Link", "Corp & Co", "2026-01-02", ""),
        ("3", "New", "Corp & Co", "2026-01-02", "€60,000.00 - €70,000.00"),
    ]
    assert received[0].headers["accept-language"].startswith("en")


async def test_the_end_page_ends_the_search(connected: Connected) -> None:
    result, _ = await call(connected, site(20), "linkedin_jobs", keyword="python", limit="50")

    assert result.data["count"] == 20


async def test_filters_that_the_pages_ignore_are_applied_from_the_details(connected: Connected) -> None:
    def details(job: int) -> str:
        if job == 1:
            return detail("Part-time")
        if job == 2:
            return detail(level="Entry level")
        return detail(text="Hybrid work.") if job == 3 else detail(text="Good work." if job == 4 else "Fully remote.")

    result, received = await call(
        connected,
        site(5, details),
        "linkedin_jobs",
        keyword="python",
        jobType="full time",
        experienceLevel="senior",
        remoteFilter="remote",
    )

    assert [(job["id"], job.get("unverified")) for job in result.data["jobs"]] == [("4", ["remoteFilter"]), ("5", None)]
    assert result.data["checkedFromDetails"] == ["jobType", "remoteFilter", "experienceLevel"]
    query = parse_qs(urlsplit(received[0].path).query)
    assert (query["f_JT"], query["f_E"], query["f_WT"]) == (["F"], ["4"], ["2"])


@pytest.mark.parametrize(
    "blocked",
    [
        Answer(body=END_PAGE.encode(), headers=HTML),
        Answer(body=b"<html><h1>Join LinkedIn</h1></html>", headers=HTML),
        Answer(status=429, headers={"retry-after": "3600"}),
        Answer(status=999),
        Answer(status=302, headers={"location": "/authwall?x=1"}),
    ],
)
async def test_a_blocked_search_is_an_error_with_a_hint_and_never_an_empty_result(
    connected: Connected, blocked: Answer
) -> None:
    def respond(request: Received) -> Answer:
        return Answer(body=b"<p>Sign in", headers=HTML) if "authwall" in request.path else blocked

    result, _ = await call(connected, respond, "linkedin_jobs", keyword="python")

    assert result.error.code is ErrorCode.UPSTREAM
    assert "try again" in result.error.message


async def test_a_job_is_read(connected: Connected) -> None:
    url = "https://de.linkedin.com/jobs/view/engineer-at-corp-77?refId=1"
    result, received = await call(connected, site(1), "linkedin_job_detail", url=url)

    assert result.data["description"] == "We work remote.\n\n- Python\n\nApply (https://corp.example/jobs)"
    assert (result.data["title"], result.data["company"], result.data["location"]) == ("Engineer", "Corp", "Berlin")
    assert received[0].path == "/jobs-guest/jobs/api/jobPosting/77"


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/jobs/view/1",
        "https://linkedin.com.evil.example/jobs/view/1",
        "https://evillinkedin.com/jobs/view/1",
        "https://www.linkedin.com/in/ann",
        "https://www.linkedin.com@evil.example/jobs/view/1",
    ],
)
async def test_only_jobs_on_linkedin_are_read(connected: Connected, url: str) -> None:
    result, received = await call(connected, site(1), "linkedin_job_detail", url=url)

    assert result.error.code in (ErrorCode.INVALID_PARAMS, ErrorCode.URL_FORBIDDEN)
    assert not received


async def test_a_limit_that_is_no_number_is_refused(connected: Connected) -> None:
    result, _ = await call(connected, site(1), "linkedin_jobs", keyword="x", limit="many")

    assert result.error.code is ErrorCode.INVALID_PARAMS
