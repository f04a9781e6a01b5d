"""Every page as each role sees it: nothing of others, and plain words where a role may not look."""

import subprocess
import sys
import time
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import expect

from tests.console.conftest import People
from tests.console.console_server import DEADLINE, ConsoleServer
from tests.console.test_pages import PAGES

SECRET = "what-ann-computed"


@pytest.fixture(scope="module")
def tokens(server: ConsoleServer) -> dict[str, str]:
    """Of each role, after somebody else has made a call; from then on the server asks for tokens."""
    server.call("calculate", expression=f"'{SECRET}'").result(timeout=60)
    found = {role: _new_token(server, role) for role in ("viewer", "operator", "admin")}
    end = time.monotonic() + DEADLINE
    for token in found.values():
        while httpx2.get(f"{server.url}/api/v1/session", headers=_bearer(token)).status_code != 200:
            assert time.monotonic() < end
    return found


def _new_token(server: ConsoleServer, role: str) -> str:
    command = [sys.executable, "-m", "toolreeve", "tokens", "add", f"eve-{role}", "--role", role]
    done = subprocess.run(command, cwd=server.workspace, env=server.env, check=True, timeout=60, capture_output=True)
    return done.stdout.decode().strip()


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def forgiven(people: People) -> Iterator[None]:
    """A browser complains about every request that is refused, or about something hidden; nothing else is forgiven."""
    yield
    people.complaints[:] = [each for each in people.complaints if "403" not in each and "404" not in each]


@pytest.mark.usefixtures("forgiven")
@pytest.mark.parametrize(("role", "sees"), [("viewer", False), ("operator", False), ("admin", True)])
def test_every_page_opens_and_shows_calls_of_others_to_admins_only(
    people: People, tokens: dict[str, str], role: str, sees: bool
) -> None:
    page = people.new("/inbox", storage_state=None, extra_http_headers=_bearer(tokens[role]))
    found = set()
    for path in PAGES:
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator("[aria-busy=true]")).to_have_count(0)
        text = page.content()
        assert "could not be loaded" not in text, path
        if SECRET in text:
            found.add(path)

    assert bool(found) == sees
    assert ("/calls" in found) == sees
