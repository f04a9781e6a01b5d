"""LinkedIn's guest pages: job cards, job details, and pages that block.

The fragments are parsed by their class names, each with fallbacks. A page that is neither cards nor the known end page
is taken for a block, never for an empty result.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from toolreeve.core.http import HttpReply
from toolreeve.tools.html import MAX_INPUT, TextWriter, render_tokens
from toolreeve.tools.markup import Token, attributes, tokens

END_PAGE = "<!DOCTYPE html>\n\n<!---->"
_URN = re.compile(r"urn:li:jobPosting:(\d{1,20})")
_WALLS = ("/authwall", "/login", "/checkpoint", "/uas/")
CARDS = ("base-search-card", "job-search-card", "base-card")
TITLES = ("top-card-layout__title", "topcard__title")
COMPANIES = ("topcard__org-name-link", "topcard__flavor")
LOCATIONS = ("topcard__flavor--bullet", "top-card-layout__second-subline")
DESCRIPTIONS = ("show-more-less-html__markup", "description__text")
SALARIES = ("compensation__salary",)


@dataclass(slots=True, kw_only=True)
class JobDetail:
    title: str = ""
    company: str = ""
    location: str = ""
    salary: str = ""
    description: str = ""
    criteria: dict[str, str] = field(default_factory=dict)


def is_blocked(reply: HttpReply) -> bool:
    return any(wall in reply.url for wall in _WALLS) or reply.status in (429, 999)


def parse_cards(source: str) -> list[dict[str, str]]:
    parts = list(tokens(source[:MAX_INPUT]))
    for name in CARDS:
        cards = []
        for given, inner in elements(parts, name):
            if found := _URN.search(attributes(given).get("data-entity-urn", "")):
                cards.append(_card(found[1], inner))
        if cards:
            return cards
    return []


def _card(job: str, inner: Sequence[Token]) -> dict[str, str]:
    posted = next((attributes(given).get("datetime", "") for name, given, _ in inner if name == "time"), "")
    return {
        "id": job,
        "title": first_text(inner, ("base-search-card__title",)),
        "company": first_text(inner, ("base-search-card__subtitle",)),
        "location": first_text(inner, ("job-search-card__location",)),
        "date": posted,
        "salary": first_text(inner, ("job-search-card__salary-info",)),
        "url": f"https://www.linkedin.com/jobs/view/{job}",
    }


def parse_detail(source: str) -> JobDetail:
    parts = list(tokens(source[:MAX_INPUT]))
    names = [_render(inner) for _, inner in elements(parts, "description__job-criteria-subheader")]
    values = [_render(inner) for _, inner in elements(parts, "description__job-criteria-text")]
    return JobDetail(
        title=first_text(parts, TITLES),
        company=first_text(parts, COMPANIES),
        location=first_text(parts, LOCATIONS),
        salary=first_text(parts, SALARIES),
        description=first_text(parts, DESCRIPTIONS, with_links=True),
        criteria=dict(zip(names, values, strict=False)),
    )


def first_text(parts: Sequence[Token], classes: Iterable[str], *, with_links: bool = False) -> str:
    """The text of the first element with the first of these classes that has some."""
    for name in classes:
        for _, inner in elements(parts, name):
            if text := _render(inner if with_links else [each for each in inner if each[0] not in ("a", "/a")]):
                return text
    return ""


def elements(parts: Iterable[Token], class_name: str) -> Iterator[tuple[str, list[Token]]]:
    """The attributes and the content of each outermost element with this class."""
    opened = ""
    given_to = ""
    depth = 0
    inner: list[Token] = []
    for name, given, text in parts:
        if not opened:
            if name and name[0] != "/" and class_name in attributes(given).get("class", "").split():
                opened = name
                given_to = given
                depth = 1
                inner = []
            continue
        if name == opened:
            depth += 1
        elif name == f"/{opened}":
            depth -= 1
            if depth == 0:
                opened = ""
                yield given_to, inner
                continue
        inner.append((name, given, text))


def _render(parts: Iterable[Token]) -> str:
    return render_tokens(parts, TextWriter("https://www.linkedin.com")).strip()
