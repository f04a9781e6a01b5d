"""`toolreeve auth` in a process of its own, against a strict local Google."""

import asyncio
import os
import re
import socket
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.cli.conftest import Shell
from tests.connectors.connected import URLS
from tests.connectors.google_server import CLIENT, SCOPE, Google, google_server
from tests.network import WebServer


def configure(shell: Shell, web: WebServer, *enabled: str) -> None:
    config = shell.home / ".config/toolreeve"
    config.mkdir(parents=True, exist_ok=True)
    urls = "".join(f'{name}_url = "http://127.0.0.1:{web.port}"\n' for name in URLS)
    listed = ", ".join(f'"{each}"' for each in enabled)
    (config / "toolreeve.toml").write_text(
        f'[network]\nallow = ["127.0.0.1:{web.port}"]\n[connectors]\nenabled = [{listed}]\n{urls}'
    )
    secrets = config / "secrets.toml"
    secrets.write_text(f'GOOGLE_CLIENT_ID = "{CLIENT[0]}"\nGOOGLE_CLIENT_SECRET = "{CLIENT[1]}"\n')
    secrets.chmod(0o600)


class Login:
    """A running `toolreeve auth`, and what the user does with the URL it prints."""

    def __init__(self, *args: str) -> None:
        self._args = args

    async def __aenter__(self) -> "Login":
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "toolreeve",
            "auth",
            *self._args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "BROWSER": "true"},
        )
        return self

    async def url(self) -> str:
        assert self.process.stderr is not None
        async with asyncio.timeout(60):
            while line := (await self.process.stderr.readline()).decode():
                if found := re.search(r"http://127\S+", line):
                    return found[0]
        raise AssertionError("no URL was printed")

    async def finish(self, pasted: str = "") -> tuple[int, str]:
        async with asyncio.timeout(60):
            out, err = await self.process.communicate(f"{pasted}\n".encode())
        return self.process.returncode or 0, (out + err).decode()

    async def __aexit__(self, *_: Any) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


async def visit(url: str) -> str:
    port = int(re.search(r":(\d+)/", url)[1])  # type: ignore[index]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {url.partition(str(port))[2]} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    page = (await reader.read()).decode()
    writer.close()
    return page


async def log_in(google: Google, *args: str) -> tuple[int, str]:
    async with Login("google", *args) as login:
        await visit(google.authorize(await login.url()))
        return await login.finish()


async def test_a_login_asks_for_the_least_that_the_enabled_tools_need(shell: Shell) -> None:
    async with google_server() as google:
        configure(shell, google.web, "gmail_search", "gmail_read")
        status, printed = await log_in(google)

    assert (status, printed.splitlines()[-1]) == (0, "connected gmail: gmail.readonly")
    assert list(google.refresh_tokens.values()) == [{f"{SCOPE}gmail.readonly"}]
    secrets = shell.home / ".config/toolreeve/secrets.toml"
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert "GOOGLE_GMAIL_GRANT" in secrets.read_text()
    for token in (*google.tokens, *google.refresh_tokens):
        assert token not in printed


async def test_each_product_has_a_login_and_a_grant_of_its_own(shell: Shell) -> None:
    async with google_server() as google:
        configure(shell, google.web, "gmail_send", "calendar_*")
        async with Login("google") as login:
            await visit(google.authorize(await login.url()))
            await visit(google.authorize(await login.url()))
            status, printed = await login.finish()

    assert status == 0, printed
    assert "connected gmail: gmail.send\n" in printed
    assert "connected calendar: calendar.events, calendar.events.readonly\n" in printed


async def test_scopes_and_port_are_as_asked(shell: Shell) -> None:
    async with google_server() as google:
        configure(shell, google.web, "gmail_*")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        async with Login("google", "--scopes", "gmail.readonly", "--port", port) as login:
            url = await login.url()
            assert "gmail.send" not in url
            assert parse_qs(urlsplit(url).query)["redirect_uri"][0].startswith(f"http://127.0.0.1:{port}")
            await visit(google.authorize(url))
            assert (await login.finish())[0] == 0


async def test_without_a_browser_the_redirect_is_pasted(shell: Shell) -> None:
    async with google_server() as google:
        configure(shell, google.web, "gmail_read")
        async with Login("google", "--no-browser") as login:
            status, printed = await login.finish(google.authorize(await login.url()))

    assert status == 0, printed


async def test_a_redirect_with_another_state_is_refused(shell: Shell) -> None:
    async with google_server() as google:
        configure(shell, google.web, "gmail_read")
        async with Login("google", "--no-browser") as login:
            redirect = google.authorize(await login.url())
            status, printed = await login.finish(re.sub("state=.*", "state=forged", redirect))
        async with Login("google") as login:
            redirect = google.authorize(await login.url())
            assert "400" in await visit(re.sub("state=.*", "state=forged", redirect))
            assert "200" in await visit(redirect)
            assert (await login.finish())[0] == 0

    assert status != 0
    assert "does not belong to the login" in printed


async def test_a_refusal_on_googles_page_is_reported(shell: Shell) -> None:
    async with google_server() as google:
        configure(shell, google.web, "gmail_read")
        async with Login("google") as login:
            await visit(google.authorize(await login.url(), grant=False))
            status, printed = await login.finish()

    assert status == 3
    assert "access_denied" in printed


async def test_status_and_revoke(shell: Shell) -> None:
    async with google_server() as google:
        configure(shell, google.web, "gmail_read")
        await log_in(google)
        shown = await asyncio.to_thread(shell.spawn, "auth", "status", "--json")
        revoked = await asyncio.to_thread(shell.spawn, "auth", "revoke", "gmail")
        after = await asyncio.to_thread(shell.spawn, "auth", "status", "--json")

    states = {row["product"]: row["state"] for row in shown.json}
    assert states == {"gmail": "connected", "calendar": "not connected; run `toolreeve auth google`"}
    assert "its tokens are revoked" in revoked.out
    assert not google.refresh_tokens
    assert {row["scopes"] == [] for row in after.json} == {True}
    assert "GRANT" not in (shell.home / ".config/toolreeve/secrets.toml").read_text()


def test_without_a_client_it_is_said_what_is_missing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_CLIENT_ID", raising=False)
    printed = shell.run("auth", "google")

    assert printed.status != 0
    assert "the secrets GOOGLE_CLIENT_ID and GOOGLE_CLIENT_SECRET" in printed.err
    assert "toolreeve secrets set GOOGLE_CLIENT_ID" in printed.err
