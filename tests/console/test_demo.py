"""`toolreeve demo` as a person sees it in the first minute: asked, denied, refused, undone."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.conftest import DESKTOP, WAIT_MS
from tests.console.console_server import DEADLINE, LINK


@pytest.fixture
def demo(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "toolreeve", "demo", "--exit"]
    env = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=DEADLINE)


def printed_link(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := LINK.search(line):
            return found[0].decode()
    raise AssertionError("it ended without a link")


def answer(page: Page, about: str, *keys: str) -> None:
    expect(page.locator("#sentence")).to_contain_text(about)
    expect(page.get_by_role("button", name=re.compile("^Deny"))).to_be_enabled()
    for key in keys:
        page.keyboard.press(key)


def test_a_person_sees_what_was_asked_denied_and_undone(
    browser: Browser, demo: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    context = browser.new_context(viewport=DESKTOP)  # type: ignore[arg-type]
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(printed_link(demo))
    expect(page.locator("#sentence")).to_contain_text("src/cart.py")
    checks = page.request.get(urljoin(page.url, "/api/v1/doctor")).json()["checks"]
    answer(page, "src/cart.py", "a", "a")
    answer(page, "http_post", "d", "Control+Enter")
    answer(page, "notes/todo.md", "a", "a")
    said = demo.communicate(timeout=DEADLINE)[0].decode()
    context.close()

    assert {"machine", "configuration", "control"} <= {each["area"] for each in checks}
    assert "undone: the last change to the notes" in said
    assert "nothing was leaked" in said
    assert "http_post: E_APPROVAL_DENIED" in said
    assert "read_file: E_PATH_FORBIDDEN" in said
    assert demo.wait(timeout=DEADLINE) == 0
    assert not list(tmp_path.glob("toolreeve-demo-*"))
