"""A runtime behind all doors on a free port, and a client for each kind of credential."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from toolreeve import Toolreeve
from toolreeve.config.sections.serve import Serve
from toolreeve.core.call import Role
from toolreeve.record.credentials import TOKEN
from toolreeve.serve.access import new_access_control
from toolreeve.serve.app import HttpServer, bind
from toolreeve.serve.doors import new_application
from toolreeve.serve.limits import read_limits
from toolreeve.serve.login import new_link
from toolreeve.serve.mcp.door import new_view
from toolreeve.serve.mcp.http import ToolViews
from toolreeve.serve.tokens import Tokens, new_stored

PROBLEM = "application/problem+json"


@dataclass(slots=True)
class ApiServer:
    """`client` sends no credential."""

    url: str
    reeve: Toolreeve
    client: httpx2.AsyncClient
    secrets: dict[str, str] = field(default_factory=dict)

    async def token(self, role: Role, user: str = "", **more: Any) -> dict[str, str]:
        """The headers of a new token."""
        secret = f"token-of-{role.value}-{user}-{len(self.secrets)}"
        row = new_stored(secret, kind=TOKEN, user=user or role.value, role=role, now=time.time(), **more)
        await self.reeve.internals.store.credentials.add(row)
        self.secrets[secret] = row.id
        if "read" in row.scopes:
            await self.until(bearer(secret), 200, user=row.user)
        else:
            await self.until(bearer(secret), 403)
        return bearer(secret)

    async def until(self, headers: dict[str, str], status: int, **session: str) -> None:
        """Until the server has looked for stored tokens."""
        for _ in range(1000):
            answer = await self.client.get("/api/v1/session", headers=headers)
            if answer.status_code == status and session.items() <= answer.json().items():
                return
            await asyncio.sleep(0.01)
        raise TimeoutError

    @asynccontextmanager
    async def browser(self) -> AsyncIterator[httpx2.AsyncClient]:
        """Logged in by a one-time link, with the headers of the console's own page."""
        link = await new_link(self.reeve.internals.store.credentials, time.time(), self.url)
        async with httpx2.AsyncClient(base_url=self.url, timeout=20) as client:
            await client.post(link)
            session = (await client.get("/api/v1/session")).json()
            client.headers.update({"origin": self.url, "x-csrf-token": session["csrf"]})
            yield client

    async def call(self, tool: str, args: Mapping[str, Any], **more: Any) -> httpx2.Response:
        return await self.client.post(f"/api/v1/tools/{tool}/call", json={"args": args}, **more)


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@asynccontextmanager
async def serving(
    reeve: Toolreeve, *, origins: Sequence[str] = (), settings: Serve | None = None, **more: Any
) -> AsyncIterator[ApiServer]:
    limits = read_limits(settings or Serve())
    views = ToolViews(new_view(reeve, search=False))
    with bind("127.0.0.1", 0) as place:
        host, port = place.getsockname()
        access = new_access_control(host, Tokens(), origins=origins)
        async with reeve, new_application(reeve, access, views, limits, **more) as application:
            server = HttpServer(application, limits, grace=0.1)
            running = asyncio.create_task(server.serve([place]))
            url = f"http://{host}:{port}"
            try:
                async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
                    yield ApiServer(url, reeve, client)
            finally:
                server.should_exit = True
                await running


async def read_events(lines: AsyncIterator[str]) -> AsyncGenerator[dict[str, str], None]:
    """The events of a stream: id, event and data."""
    event: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(": ")
            event[name] = value
        elif event:
            yield event
            event = {}
