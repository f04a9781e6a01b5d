"""Every code block of every page runs, and every link leads somewhere."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.blocks import read_blocks
from tests.docs.output_match import matches, visible_lines
from tests.docs.page import ROOT, Page, environment, shown_in
from toolreeve.policy.files import read_rules

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_MAKE = re.compile(r"\bmake ([a-z]+)\b")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory with a short name: tables that show it are not wrapped."""
    with TemporaryDirectory(prefix="docs-") as name:
        yield Path(name)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_of_the_page_does_what_it_shows(path: Path, scratch: Path) -> None:
    with Page(path, scratch) as page:
        page.run()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_the_page_leads_somewhere(page: Path) -> None:
    links = _LINK.findall(_FENCED.sub("", page.read_text()))
    targets = [link for link in links if not link.startswith(("http://", "https://"))]

    assert [target for target in targets if not leads_somewhere(page, target)] == []


def leads_somewhere(page: Path, target: str) -> bool:
    name, _, anchor = target.partition("#")
    path = (page.parent / name).resolve() if name else page
    return path.exists() and (not anchor or anchor in anchors(path))


def anchors(page: Path) -> set[str]:
    """The headings of a page as a link spells them."""
    headings = _HEADING.findall(page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {target for page in PAGES for code in code_of(page) for target in _MAKE.findall(code)}

    assert named - targets == set()


def code_of(page: Path) -> list[str]:
    return re.findall(r"`+([^`]+)`+", page.read_text())


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=name_of)
def test_every_example_prints_what_it_says(path: Path, scratch: Path) -> None:
    project = scratch / "project"
    project.mkdir(exist_ok=True)

    done = subprocess.run(
        [sys.executable, path], cwd=project, env=environment(scratch), capture_output=True, text=True, timeout=60
    )

    assert done.stderr == ""
    assert matches(visible_lines("\n".join(shown_in(path.read_text()))), visible_lines(done.stdout)), done.stdout


def test_the_example_policy_holds() -> None:
    rules = read_rules(ROOT / "examples" / "policy.yaml", root=str(ROOT))

    assert [rule.id for rule in rules] == [
        "sources-are-free",
        "hands-off-continuous-integration",
        "generated-code-asks",
    ]


def test_python_of_the_readme_runs_as_a_script() -> None:
    blocks = [block for block in read_blocks(ROOT / "README.md") if block.language == "python"]

    assert [block.line for block in blocks if not block.fresh] == []
    for block in blocks:
        compile(block.text, "README.md", "exec")
