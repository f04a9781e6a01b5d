"""Receives the redirect of a browser login, on a loopback port.

The port listens on loopback only and for one login. A request with another state than the one that was sent out belongs
to another login, and is refused.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

PATH = "/callback"
MAX_REQUEST = 16 * 1024
READ_SECONDS = 10.0
MAX_CONNECTIONS = 32


class LoginFailed(Exception):
    """A login failed. The message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallbackOutcome:
    code: str
    state: str
    issuer: str | None


class LoginCallback:
    """The redirect URI of one login. Without `expect`, every request is refused."""

    def __init__(self) -> None:
        self.port = 0
        self._state: str | None = None
        self._outcome: asyncio.Future[CallbackOutcome] = asyncio.get_running_loop().create_future()
        self._connections = 0

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    def expect(self, authorization_url: str) -> None:
        """Remember the state that the browser must bring back."""
        self._state = parse_qs(urlsplit(authorization_url).query).get("state", [None])[0]

    async def outcome(self) -> CallbackOutcome:
        """Raises LoginFailed."""
        return await asyncio.shield(self._outcome)

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            with suppress(OSError, TimeoutError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                if self._connections <= MAX_CONNECTIONS:
                    async with asyncio.timeout(READ_SECONDS):
                        head = await reader.readuntil(b"\r\n\r\n")
                        writer.write(self._respond(head.decode("latin-1")))
                        await writer.drain()
        finally:
            self._connections -= 1
            writer.close()

    def _respond(self, head: str) -> bytes:
        method, _, rest = head.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        if method != "GET" or target.path != PATH:
            return _page(404, "Not found.")
        if not self._accept(target.query):
            return _page(400, "This is not the login that was started. Start again.")
        was_granted = self._outcome.done() and self._outcome.exception() is None
        return _page(200, "Done. You can close this window." if was_granted else "The login was refused.")

    def paste(self, redirect: str) -> None:
        """Take the address that the browser ended on from the user, who has it on another machine. Raises LoginFailed
        if it belongs to another login."""
        if not self._accept(urlsplit(redirect.strip()).query):
            raise LoginFailed(
                "the address does not belong to the login that was started: copy all of it, or start again"
            )

    def _accept(self, query: str) -> bool:
        """Whether the query belongs to this login; only the first outcome counts."""
        params = {name: values[0] for name, values in parse_qs(query).items()}
        if not self._state or not secrets.compare_digest(params.get("state", "").encode(), self._state.encode()):
            return False
        if not self._outcome.done():
            self._set_outcome(params)
        return True

    def _set_outcome(self, params: dict[str, str]) -> None:
        if code := params.get("code"):
            self._outcome.set_result(CallbackOutcome(code=code, state=params["state"], issuer=params.get("iss")))
            return
        why = params.get("error_description") or params.get("error") or "no code came back"
        self._outcome.set_exception(LoginFailed(f"the login was refused: {why[:300]}"))
        self._outcome.exception()


@asynccontextmanager
async def listen_for_callback(port: int | None = None) -> AsyncIterator[LoginCallback]:
    """Listen for one login, on the given port or on any. Raises OSError where the port is taken."""
    callback = LoginCallback()
    server = await asyncio.start_server(callback.receive, "127.0.0.1", port or 0, limit=MAX_REQUEST)
    callback.port = server.sockets[0].getsockname()[1]
    try:
        yield callback
    finally:
        server.close()


def _page(status: int, text: str) -> bytes:
    body = f"<!doctype html><meta charset=utf-8><title>Toolreeve</title><p>{text}".encode()
    head = (
        f"HTTP/1.1 {status} {'OK' if status == 200 else 'No'}\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\ncontent-security-policy: default-src 'none'\r\n"
        "referrer-policy: no-referrer\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
