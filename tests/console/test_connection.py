"""The console while the server is away, and when it is back."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.console.conftest import People
from tests.console.console_server import ConsoleServer


@pytest.fixture
def expected_complaints(people: People) -> Iterator[None]:
    """A browser complains about every request to a server that is away; nothing else is forgiven."""
    yield
    people.complaints[:] = [each for each in people.complaints if "net::ERR_" not in each]


@pytest.mark.usefixtures("expected_complaints")
def test_answers_are_off_while_the_server_is_away_and_on_again_after_its_restart(
    server: ConsoleServer, people: People
) -> None:
    page = people.new("/inbox")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    server.call("write_file", path="later.txt", content="x")
    expect(page.locator("#sentence")).to_contain_text("later.txt")
    deny = page.get_by_role("button", name=re.compile("^Deny"))
    expect(deny).to_be_enabled()

    server.stop()
    expect(page.get_by_text("The connection to the runtime was lost")).to_be_visible()
    expect(deny).to_be_disabled()

    server.start()
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.get_by_text("The connection to the runtime was lost")).to_have_count(0)
    call = server.call("write_file", path="again.txt", content="x")
    page.get_by_role("link").filter(has_text="again.txt").click()
    expect(page.locator("#sentence")).to_contain_text("again.txt")
    expect(deny).to_be_enabled()
    page.keyboard.press("a")
    page.keyboard.press("a")
    assert call.result(timeout=60)["success"]


def test_a_link_logs_in_once(server: ConsoleServer, people: People) -> None:
    page = people.new("/inbox")
    page.request.post(server.link)
    again = page.request.get(server.link)

    assert again.status == 403
    assert "toolreeve tokens link" in again.text()


def test_a_preview_of_a_question_decides_nothing(server: ConsoleServer, people: People) -> None:
    page = people.new("/inbox")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    call = server.call("write_file", path="preview.txt", content="x")
    page.get_by_role("link").filter(has_text="preview.txt").click()
    expect(page.locator("#sentence")).to_contain_text("preview.txt")
    number = page.url.rpartition("/")[2]
    for path in (f"/inbox/{number}", f"/api/v1/approvals/{number}", f"/api/v1/approvals/{number}/decide"):
        page.request.get(server.url + path)

    assert not call.done()
    assert page.request.get(f"{server.url}/api/v1/approvals/{number}").json()["state"] == "pending"


def test_a_browser_without_a_login_may_look_and_is_told_how_to_answer(server: ConsoleServer, people: People) -> None:
    server.call("write_file", path="look.txt", content="x")
    page = people.new("/inbox", storage_state=None)
    page.get_by_role("link").filter(has_text="look.txt").click()

    expect(page.get_by_text("This browser may look, but not answer")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^(Allow|Deny)"))).to_have_count(0)
