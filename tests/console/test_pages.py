"""Every page in both themes and on a phone: accessible, whole, and without a complaint of the browser."""

import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.console_server import ConsoleServer
from toolreeve.testing import ScriptedModel, call, say

OpenPage = Callable[..., Page]
AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN_AXE = """async (standards) => {
    const found = await axe.run(document, { runOnly: standards });
    const where = (each) => each.nodes.map((node) => `${node.target} ${node.html}`).slice(0, 3);
    return found.violations.map((each) => `${each.id}: ${where(each)}`);
}"""
SETTINGS = f"""
[approval]
timeout = 600

[commands]
network = "guarded"

[mcp_servers.system-info]
command = "{sys.executable}"
args = ["-m", "toolreeve.system_info"]
trusted = true
"""
PAGES = [
    "/inbox",
    "/calls",
    "/calls?outcome=failed",
    "/activity",
    "/tools",
    "/tools/write_file",
    "/runs",
    "/policy",
    "/policy/grants",
    "/policy/explain",
    "/policy/simulate",
    "/policy/suggestions",
    "/servers",
    "/audit",
    "/setup",
    "/setup/clients",
    "/setup/tokens",
    "/setup/workers",
    "/setup/api",
]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "dark", "phone": True},
}


@pytest.fixture(scope="module")
def waiting(server: ConsoleServer) -> "list[Future[dict[str, Any]]]":
    """Some calls on record, and two questions that wait for nobody yet."""
    (server.workspace / "app.py").write_text("TIMEOUT = 30\n\nprint(TIMEOUT)\n")
    for path in ("app.py", "missing.py", "/etc/shadow"):
        server.call("read_file", path=path).result(timeout=60)
    with ScriptedModel([call("read_file", path="app.py"), say("It waits 30 seconds.")]) as model:
        command = [sys.executable, "-m", "toolreeve", "agent", "run", "How long does it wait?"]
        address = ["--model", "ollama:scripted", "--base-url", model.base_url("ollama")]
        subprocess.run([*command, *address], cwd=server.workspace, env=server.env, check=True, timeout=60)
    asked = [
        server.call("write_file", path="app.py", content="TIMEOUT = 10\n\nprint(TIMEOUT)\n"),
        server.call("bash", command="git push --force origin main"),
    ]
    for each in asked:
        each.result(timeout=60)
    return asked


def problems(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found: list[str] = page.evaluate(RUN_AXE, STANDARDS)
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("the page is wider than the window")
    return found


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.usefixtures("waiting")
def test_every_page_is_accessible_and_fits(open_page: OpenPage, look: str) -> None:
    page = open_page("/inbox", bypass_csp=True, **LOOKS[look])
    found: dict[str, list[str]] = {}
    for path in PAGES:
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        if here := problems(page):
            found[path] = here

    assert found == {}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.usefixtures("waiting")
def test_an_open_question_a_call_and_the_overlays_are_accessible_too(open_page: OpenPage, look: str) -> None:
    page = open_page("/inbox", bypass_csp=True, **LOOKS[look])
    page.get_by_role("link").filter(has_text="app.py").first.click()
    expect(page.locator("#sentence")).to_be_visible()
    found = {"question": problems(page)}
    page.goto("/calls")
    page.get_by_role("region", name="Calls, newest first").get_by_role("link").first.click()
    expect(page.get_by_text("The road")).to_be_visible()
    found["call"] = problems(page)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search or jump to")).to_be_focused()
    found["palette"] = problems(page)

    assert found == {"question": [], "call": [], "palette": []}


@pytest.mark.usefixtures("waiting")
def test_a_phone_shows_one_pane_at_a_time_and_the_answer_at_the_bottom(open_page: OpenPage) -> None:
    page = open_page("/inbox", phone=True)
    page.get_by_role("link").filter(has_text="git push").first.click()
    deny = page.get_by_role("button", name="Deny…")
    expect(deny).to_be_enabled()
    box = deny.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    expect(page.get_by_role("navigation", name="Pages, short")).to_be_hidden()
    page.get_by_role("link", name="All questions").click()

    expect(page.get_by_role("link").filter(has_text="app.py").first).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages, short")).to_be_visible()


def test_a_client_is_adopted_and_hooked_with_a_click_after_its_change_was_shown(
    server: ConsoleServer, open_page: OpenPage
) -> None:
    settings = server.home / ".codex/config.toml"
    settings.parent.mkdir()
    settings.write_text('[mcp_servers.docs]\ncommand = "docs-server"\n')
    page = open_page("/setup/clients")
    change = page.locator("section").filter(has_text="Adopt Codex: what would change")
    expect(change).to_contain_text("docs-server")
    change.get_by_role("button", name="Adopt").click()
    expect(change).to_have_count(0)
    page.get_by_role("row").filter(has_text="hooks.json").get_by_role("button").click()
    page.get_by_role("button", name="Install").click()
    expect(page.get_by_role("row").filter(has_text="hooks.json")).to_contain_text("installed")

    assert "toolreeve" in settings.read_text()
    assert (settings.parent / "hooks.json").is_file()


@pytest.mark.usefixtures("waiting")
def test_a_run_of_the_agent_is_a_timeline_that_leads_to_its_calls(open_page: OpenPage) -> None:
    page = open_page("/runs")
    steps = page.get_by_role("list", name="What happened, in order").get_by_role("listitem")
    expect(steps).to_have_count(4)
    expect(steps.nth(2)).to_contain_text("untrusted")
    expect(steps.nth(3)).to_contain_text("It waits 30 seconds.")
    steps.nth(2).get_by_role("link", name="see the call").click()

    expect(page).to_have_url(re.compile("/calls/"))
    expect(page.get_by_text("The road")).to_be_visible()


def test_the_api_is_documented_without_the_network(open_page: OpenPage) -> None:
    page = open_page("/setup/api")
    page.get_by_role("searchbox", name="Find an endpoint").fill("PUT /api/v1/policy")
    page.get_by_text("Replace the user's policy file").click()

    expect(page.get_by_text("Needs the scope")).to_be_visible()
    expect(page.get_by_text("PolicySaved")).to_be_visible()


def test_keys_and_the_palette_reach_every_page(open_page: OpenPage) -> None:
    page = open_page("/inbox")
    expect(page.locator("h1")).to_have_text("Inbox")
    for key, name in {
        "r": "Runs",
        "c": "Calls",
        "y": "Activity",
        "t": "Tools",
        "p": "Policy",
        "s": "Servers",
        "a": "Audit",
    }.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(name)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search or jump to")).to_be_focused()
    page.keyboard.type("explain a")
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("/policy/explain$"))


def test_the_security_policy_of_the_page_is_strict(server: ConsoleServer, open_page: OpenPage) -> None:
    page = open_page("/inbox")
    answer = page.request.get(server.url)
    policy = answer.headers["content-security-policy"]

    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_the_theme_is_kept_and_does_not_flash(open_page: OpenPage) -> None:
    page = open_page("/inbox", color_scheme="light")
    page.get_by_role("button", name="Use the dark theme").click()
    page.reload(wait_until="commit")

    assert page.locator("html").get_attribute("data-mantine-color-scheme") == "dark"


@pytest.mark.usefixtures("waiting")
def test_a_policy_is_completed_checked_replayed_and_saved(server: ConsoleServer, open_page: OpenPage) -> None:
    page = open_page("/policy/simulate")
    editor = page.get_by_role("textbox", name="Editor: policy.yaml")
    expect(page.get_by_text("1 rule, valid")).to_be_visible()
    editor.click()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("  - id: reads-ask\n    tool: read_file\n    ")
    page.keyboard.type("dec")
    expect(page.locator(".cm-tooltip-autocomplete")).to_contain_text("decision")
    page.keyboard.press("Escape")
    page.keyboard.type("ision: aks")
    expect(page.get_by_role("list", name="Problems")).to_contain_text("decision")
    for _ in "aks":
        page.keyboard.press("Backspace")
    page.keyboard.type("ask")
    expect(page.get_by_text("2 rules, valid")).to_be_visible()
    page.get_by_role("button", name="Replay the calls on record").click()

    expect(page.get_by_text(re.compile("would end differently"))).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("allow becomes ask"))).to_be_visible()
    expect(page.get_by_role("group", name="Changes")).to_contain_text("id: reads-ask")
    page.get_by_role("button", name="Save this policy").click()
    expect(page.get_by_text("This is the policy in force.")).to_be_visible()
    server.call("read_file", path="app.py")
    page.goto("/inbox")
    page.get_by_role("link").filter(has_text="read").first.wait_for()
    page.goto("/policy")

    expect(page.get_by_role("row").filter(has_text="reads-ask")).to_contain_text("policy.yaml")
