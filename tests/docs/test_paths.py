"""Paths that the documentation names: each exists, and each claim of SECURITY.md names its test."""

import re
from pathlib import Path

import pytest

from tests.docs.page import ROOT

PAGES = [
    "CONTRIBUTING.md",
    "SECURITY.md",
    *(str(each.relative_to(ROOT)) for each in (ROOT / "docs/design").glob("*.md")),
]
_PATH = re.compile(r"`((?:src|tests|docs|bench|examples)/[^`\s]*)`")
_MODULE = re.compile(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`")


def paths_of(page: str) -> list[str]:
    return _PATH.findall((ROOT / page).read_text())


def rows_of(page: str) -> list[list[str]]:
    """The cells of the rows of all tables of a page, without headers."""
    lines = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if not set(row[0]) <= {"-"}]


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_path_that_a_page_names_exists(page: str) -> None:
    assert [path for path in paths_of(page) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", sorted(PAGES))
def test_every_module_that_a_page_names_below_the_package_exists(page: str) -> None:
    named = set(_MODULE.findall((ROOT / page).read_text()))
    package = ROOT / "src" / "toolreeve"

    assert [name for name in named if not any((root / name).is_file() for root in (ROOT, package))] == []


def test_the_map_has_a_file_and_a_test_for_at_least_thirty_changes() -> None:
    _, _, section = (ROOT / "docs/design/where-things-go.md").read_text().partition("## Typical changes")
    section, _, _ = section.partition("\n## ")
    changes = [line for line in section.splitlines() if line.startswith("| ") and "`src/" in line]

    assert len(changes) >= 30
    assert [change for change in changes if "`tests/" not in change] == []


def test_every_claim_of_the_security_page_names_a_test_file() -> None:
    claims = [row for row in rows_of("SECURITY.md")[1:] if not row[0].startswith("**")]
    tests = [row[1].strip("`") for row in claims]

    assert len(claims) >= 40
    assert [name for name in tests if not Path(name).name.startswith("test_")] == []
    assert [name for name in tests if not (ROOT / name).is_file()] == []
