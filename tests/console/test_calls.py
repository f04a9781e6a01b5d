"""The list of calls: live, filtered by the URL, long; and one call with its road, its copies and undo."""

import asyncio
import re
from collections.abc import Callable

from bench.fill import fill
from playwright.sync_api import Page, expect

from tests.console.console_server import ConsoleServer, background
from toolreeve.config.xdg import DATABASE

OpenPage = Callable[..., Page]
MANY = 10_000
SETTINGS = """
[policy]
mode = "accept_edits"
"""
SCROLL = """async () => {
    const list = document.querySelector('[aria-label="Calls, newest first"]');
    let most = 0;
    for (let step = 0; step < 2000 && list.scrollTop < 30000; step++) {
        list.scrollTop += 900;
        await new Promise(requestAnimationFrame);
        most = Math.max(most, list.querySelectorAll("a").length);
    }
    return [most, list.scrollTop];
}"""


def seed(server: ConsoleServer) -> None:
    """Many calls of earlier days, in the record of this server."""
    state = server.home / ".local/state/toolreeve"
    state.mkdir(mode=0o700, parents=True)
    background(lambda: asyncio.run(fill(state / DATABASE, MANY))).result(timeout=120)


def test_ten_thousand_calls_scroll_with_a_screenful_in_the_page(open_page: OpenPage) -> None:
    page = open_page("/calls")
    expect(page.get_by_text(re.compile(r"^10,\d\d\d calls$"))).to_be_visible()
    expect(page.get_by_role("region", name="Calls, newest first").get_by_role("link").first).to_be_visible()

    most, reached = page.evaluate(SCROLL)

    assert most < 80
    assert reached >= 30_000


def test_a_new_call_appears_at_once_and_waits_while_the_list_is_scrolled(
    server: ConsoleServer, open_page: OpenPage
) -> None:
    page = open_page("/calls")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    server.call("read_file", path="first.txt").result(timeout=60)
    expect(page.get_by_role("link").filter(has_text="first.txt")).to_be_visible()
    page.get_by_role("region", name="Calls, newest first").evaluate("list => { list.scrollTop = 2000 }")
    expect(page.get_by_role("link").filter(has_text="first.txt")).to_have_count(0)
    server.call("read_file", path="second.txt").result(timeout=60)
    page.get_by_role("button", name="1 new call").click()

    expect(page.get_by_role("link").filter(has_text="second.txt")).to_be_visible()


def test_filters_are_in_the_url_and_survive_a_reload(server: ConsoleServer, open_page: OpenPage) -> None:
    server.call("read_file", path="gone.txt").result(timeout=60)
    page = open_page("/calls")
    page.get_by_label("Outcome").select_option("failed")
    expect(page).to_have_url(re.compile(r"\?outcome=failed$"))
    page.reload()
    expect(page.get_by_role("link").filter(has_text="gone.txt").first).to_be_visible()
    expect(page.get_by_role("link").filter(has_text="read_file").filter(has_text="pipeline.py")).to_have_count(0)
    page.get_by_role("button", name="Clear", exact=True).click()

    expect(page.get_by_role("link").filter(has_text="pipeline.py").first).to_be_visible()


def test_a_call_shows_its_road_and_copies_and_can_be_undone(server: ConsoleServer, open_page: OpenPage) -> None:
    (server.workspace / "note.txt").write_text("before\n")
    made = server.call("write_file", path="note.txt", content="after\n").result(timeout=60)["meta"]["call_id"]
    page = open_page(f"/calls/{made}", permissions=["clipboard-read", "clipboard-write"])
    expect(page.get_by_text("The road")).to_be_visible()
    for stage in ("resolve", "validate", "decide", "execute", "record"):
        expect(page.get_by_text(stage, exact=True).first).to_be_visible()
    page.get_by_role("button", name="Copy as").click()
    page.get_by_role("menuitem", name=re.compile("curl")).click()
    expect(page.get_by_text("Copied as curl")).to_be_visible()
    assert "/api/v1/tools/write_file/call" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("button", name="Undo").click()

    expect(page.get_by_role("button", name="Undone")).to_be_disabled()
    assert (server.workspace / "note.txt").read_text() == "before\n"


def test_a_call_shows_the_difference_that_it_made(server: ConsoleServer, open_page: OpenPage) -> None:
    (server.workspace / "cart.py").write_text("VAT = 0.16\n")
    edits = [{"old": "0.16", "new": "0.19"}]
    made = server.call("edit_file", path="cart.py", edits=edits).result(timeout=60)["meta"]["call_id"]
    page = open_page(f"/calls/{made}")
    page.get_by_role("tab", name="Changes").click()

    changes = page.get_by_role("group", name="Changes")
    expect(changes).to_contain_text("VAT = 0.16")
    expect(changes).to_contain_text("VAT = 0.19")


def test_a_tool_is_tried_with_the_decision_in_sight(server: ConsoleServer, open_page: OpenPage) -> None:
    page = open_page("/tools/calculate")
    page.get_by_label("expression").fill("6 * 7")
    expect(page.get_by_text("Runs unasked")).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text('"result": 42')).to_be_visible()
    page.goto("/tools/write_file")
    page.get_by_label("path").fill("toolreeve.toml")
    page.get_by_label("content").fill("x")

    expect(page.get_by_text("Is denied")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()


def test_the_chain_is_verified_on_request(open_page: OpenPage) -> None:
    page = open_page("/audit")
    page.get_by_role("button", name="Verify now").click()

    expect(page.get_by_role("heading", name="The chain is intact")).to_be_visible()
    expect(page.get_by_role("img", name="60 of 60 parts of the chain are intact")).to_be_visible()
