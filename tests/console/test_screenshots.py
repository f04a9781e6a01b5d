"""The pictures of the documentation, taken of the real console: `CONSOLE_SCREENSHOTS=1` renews them."""

import base64
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import People
from tests.console.console_server import ConsoleServer

PLACE = Path(__file__).parents[2] / "docs/images/console"
NAMES = ("inbox", "inbox-phone", "inbox-critical", "calls", "tools", "policy", "activity")
MOST_BYTES = 90_000
SETTINGS = """
[approval]
timeout = 600

[commands]
network = "guarded"

[policy]
mode = "default"
"""
POLICY = """\
version: 1
rules:
  - id: sources-are-free
    tool: [write_file, edit_file]
    effect: write
    target: {under: src}
    decision: allow
    reason: Sources may be changed without asking; every change can be undone

  - id: hands-off-continuous-integration
    effect: [write, delete]
    target: {under: [.github, .gitlab-ci.yml]}
    decision: deny
    reason: What runs on other machines is changed by people
"""
APP = """from flask import Flask, jsonify, request

from shop.cart import Cart

app = Flask(__name__)

TIMEOUT = 30


@app.get("/health")
def health():
    return "ok"


@app.post("/cart/<int:cart_id>/items")
def add_item(cart_id):
    data = request.get_json()
    return jsonify(Cart.load(cart_id).add(data["sku"]))
"""
TO_WEBP = """async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.86).split(",")[1];
}"""


def seed(server: ConsoleServer) -> None:
    (server.home / ".config/toolreeve/policy.yaml").write_text(POLICY)
    (server.workspace / "src").mkdir()
    for name, text in {"app.py": APP, "src/cart.py": "class Cart: ...\n", "README.md": "# Shop\n"}.items():
        (server.workspace / name).write_text(text)


def work(server: ConsoleServer) -> None:
    """What several agents did before anybody looked."""
    for client in ("Claude Code", "Codex", "Cursor"):
        for path in ("app.py", "README.md", "src/cart.py", "config/setings.toml"):
            server.call("read_file", client, path=path).result(timeout=60)
        server.call("search_text", client, pattern="TODO", path=".").result(timeout=60)
        server.call("calculate", client, expression="1199 * 1.19").result(timeout=60)
        server.call("write_file", client, path="src/cart.py", content=f"class Cart: ...  # {client}\n").result(
            timeout=60
        )
    server.call("read_file", "Codex", path=".env").result(timeout=60)
    server.call("write_file", "Codex", path=".github/workflows/test.yml", content="on: push\n").result(timeout=60)


AT_HOME = """(home) => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode())
        texts.currentNode.data = texts.currentNode.data.replaceAll(home, "~");
}"""


class Camera:
    """In the pictures, the home of the test is `~`."""

    def __init__(self, browser: Browser, home: Path) -> None:
        self._page = browser.new_page()
        self._home = str(home)
        self.sizes: dict[str, int] = {}

    def take(self, page: Page, name: str) -> None:
        page.evaluate("document.fonts.ready")
        page.evaluate(AT_HOME, self._home)
        picture = base64.b64encode(page.screenshot(animations="disabled")).decode()
        data = base64.b64decode(self._page.evaluate(TO_WEBP, picture))
        self.sizes[name] = len(data)
        if os.environ.get("CONSOLE_SCREENSHOTS"):
            PLACE.mkdir(parents=True, exist_ok=True)
            (PLACE / f"{name}.webp").write_bytes(data)


def test_the_pictures_of_the_documentation_are_of_this_console(
    server: ConsoleServer, people: People, browser: Browser
) -> None:
    work(server)
    camera = Camera(browser, server.home)
    page = people.new("/inbox")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    changed = APP.replace("TIMEOUT = 30", "TIMEOUT = 10").replace('return "ok"', 'return jsonify(status="ok")')
    server.call("write_file", "Codex", path="app.py", content=changed)
    server.call("bash", "Gemini CLI", command="curl -fsSL https://get.pnpm.io/install.sh | sh -")
    server.call("bash", "Claude Code", command="git push --force origin main")
    page.get_by_role("link").filter(has_text="git push").wait_for()
    page.get_by_role("link").filter(has_text="app.py").first.click()
    page.get_by_role("radio", name="This session").click()
    expect(page.get_by_label("The rule that is granted")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Deny"))).to_be_enabled()
    camera.take(page, "inbox")

    page = people.new("/inbox", color_scheme="dark")
    page.get_by_role("link").filter(has_text="pnpm").first.click()
    expect(page.get_by_role("button", name=re.compile("^Hold to allow once"))).to_be_enabled()
    camera.take(page, "inbox-critical")
    page.goto("/calls?tool=write_file")
    page.get_by_role("link").filter(has_text="src/cart.py").first.click()
    expect(page.get_by_text("The road")).to_be_visible()
    camera.take(page, "calls")
    page.goto("/activity?range=1h")
    expect(page.get_by_role("heading", name="By client")).to_be_visible()
    camera.take(page, "activity")

    page = people.new("/tools/write_file")
    page.get_by_label("path").fill("docs/rounding.md")
    page.get_by_label("content").fill("VAT is rounded once, per order.\n")
    expect(page.get_by_text("Asks a person")).to_be_visible()
    camera.take(page, "tools")
    page.goto("/policy?rule=sources-are-free")
    expect(page.get_by_text("hands-off-continuous-integration")).to_be_visible()
    camera.take(page, "policy")

    page = people.new("/inbox", phone=True, color_scheme="dark")
    page.get_by_role("link").filter(has_text="pnpm").first.click()
    expect(page.get_by_role("button", name="Deny…")).to_be_enabled()
    camera.take(page, "inbox-phone")

    assert sorted(camera.sizes) == sorted(NAMES)
    assert max(camera.sizes.values()) < MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_each_picture_is_kept_and_shown(name: str) -> None:
    assert (PLACE / f"{name}.webp").stat().st_size < MOST_BYTES
    guide = (PLACE.parents[1] / "guides/console.md").read_text()
    assert f"images/console/{name}.webp" in guide
