"""A browser, and people who look at the console with it. Whatever the browser complains about fails the test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.console.console_server import ConsoleServer

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",
)
DESKTOP = {"width": 1360, "height": 860}
PHONE = {"width": 390, "height": 844}
WAIT_MS = 20_000

SETTINGS = """
[approval]
timeout = 120

[commands]
network = "guarded"
"""

expect.set_options(timeout=WAIT_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for longer than a module: while Playwright runs, no other test of the process can start an event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[ConsoleServer]:
    """One server for a module, with the module's own SETTINGS and `seed`, if it has them."""
    module = request.module
    served = ConsoleServer(tmp_path_factory.mktemp("console"), getattr(module, "SETTINGS", SETTINGS))
    if seed := getattr(module, "seed", None):
        seed(served)
    served.start()
    yield served
    served.stop()


@pytest.fixture(scope="module")
def login(browser: Browser, server: ConsoleServer) -> Any:
    """The cookies of a person who opened the one-time link."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.link)
    page.wait_for_url(lambda url: "/login" not in url)
    state = context.storage_state()
    context.close()
    return state


class People:
    """`new` is somebody with a browser of their own; `complaints` is what their browsers said."""

    def __init__(self, browser: Browser, login: Any, url: str) -> None:
        self._browser = browser
        self._login = login
        self._url = url
        self._contexts: list[BrowserContext] = []
        self.complaints: list[str] = []

    def new(self, path: str, *, phone: bool = False, **options: Any) -> Page:
        context = self._browser.new_context(
            base_url=self._url,
            viewport=PHONE if phone else DESKTOP,  # type: ignore[arg-type]
            has_touch=phone,
            is_mobile=phone,
            **{"color_scheme": "light", "reduced_motion": "reduce", "storage_state": self._login, **options},
        )
        context.set_default_timeout(WAIT_MS)
        self._contexts.append(context)
        page = context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        page.goto(path)
        return page

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            self.complaints.append(said.text)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def people(browser: Browser, login: Any, server: ConsoleServer) -> Iterator[People]:
    found = People(browser, login, server.url)
    yield found
    found.close()
    assert found.complaints == []


@pytest.fixture
def open_page(people: People) -> Callable[..., Page]:
    return people.new
