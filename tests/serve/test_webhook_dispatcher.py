"""Webhooks against a real receiver: signed, retried, ordered, once acknowledged forgotten, and never lost."""

import asyncio
import hashlib
import hmac
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.config.sections.network import Network
from toolreeve.config.sections.policy import Policy
from toolreeve.core.call import Role
from toolreeve.core.errors import ConfigError
from toolreeve.serve.tokens import AccessScope
from toolreeve.serve.webhook_settings import read_webhooks

HOOKS = "/api/v1/webhooks"
RETRY = {"initial_delay": 0.01, "max_delay": 0.02, "max_attempts": 3}


@dataclass(slots=True)
class Receiver:
    """Answers with the next of `statuses`, then with 204; `held` keeps it from answering."""

    port: int = 0
    statuses: list[int] = field(default_factory=list)
    headers: bytes = b""
    held: asyncio.Event = field(default_factory=asyncio.Event)
    got: asyncio.Queue[tuple[dict[str, str], bytes]] = field(default_factory=asyncio.Queue)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().split("\r\n")[1:]
                headers = {name.lower(): value for line in lines if line for name, _, value in [line.partition(": ")]}
                body = await reader.readexactly(int(headers["content-length"]))
                await self.held.wait()
                self.got.put_nowait((headers, body))
                status = self.statuses.pop(0) if self.statuses else 204
                writer.write(b"HTTP/1.1 %d X\r\n%scontent-length: 0\r\n\r\n" % (status, self.headers))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def next(self) -> dict[str, Any]:
        headers, body = await asyncio.wait_for(self.got.get(), 20)
        return {"headers": headers, "body": body, **json.loads(body)}


@asynccontextmanager
async def receiving(**options: Any) -> AsyncIterator[Receiver]:
    receiver = Receiver(**options)
    receiver.held.set()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        receiver.held.set()
        server.close()


@asynccontextmanager
async def hooked(
    world: World, receiver: Receiver, **options: Any
) -> AsyncIterator[tuple[ApiServer, httpx2.AsyncClient, dict[str, Any]]]:
    settings = world.settings(network=Network(allow=(f"127.0.0.1:{receiver.port}",)))
    async with serving(world.reeve(settings=settings)) as server, server.browser() as browser:
        body = {"url": receiver.url, "events": ["tool_execution"], "retry": RETRY, **options}
        added = await browser.post(HOOKS, json=body)
        assert added.status_code == 200, added.text
        await until_following(server)
        yield server, browser, added.json()


async def until_following(server: ApiServer) -> None:
    """Until events from now on become deliveries."""
    for _ in range(500):
        if await server.reeve.internals.store.webhooks.cursor("record") is not None:
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_a_delivery_is_signed_over_its_exact_bytes_with_time_and_id(world: World) -> None:
    async with receiving() as receiver, hooked(world, receiver) as (server, _, hook):
        result = await server.call("calculate", {"expression": "6 * 7"})
        got = await receiver.next()

    headers = got["headers"]
    signed = f"{headers['x-toolreeve-timestamp']}.{headers['x-toolreeve-id']}.".encode() + got["body"]
    expected = hmac.new(hook["secret"].encode(), signed, hashlib.sha256).hexdigest()
    assert headers["x-toolreeve-signature"] == f"sha256={expected}" == headers["x-a2a-signature"]
    assert (got["id"], got["event"], got["data"]["status"]) == (
        headers["x-toolreeve-id"],
        "tool_execution",
        "completed",
    )
    assert got["task_id"] == result.json()["meta"]["call_id"]


async def test_a_webhook_gets_the_events_of_its_priorities(world: World) -> None:
    async with receiving() as receiver, hooked(world, receiver, min_priority=1) as (server, _, _):
        await server.call("calculate", {"expression": "1"})
        await server.reeve.call("write_file", path="a.txt", content="x")
        told = await receiver.next()

    assert told["data"]["tool_id"] == "write_file"


async def test_webhooks_of_the_configuration_are_stored_and_removed_with_it(world: World) -> None:
    async with receiving() as receiver:
        table = {"name": "alarm", "url": receiver.url, "secret": "${secret:HOOK}", "events": ("tool_execution",)}
        configured = read_webhooks([table], lambda _: "s" * 20)
        settings = world.settings(network=Network(allow=(f"127.0.0.1:{receiver.port}",)))
        async with serving(world.reeve(settings=settings), configured_webhooks=configured) as server:
            admin = await server.token(Role.ADMIN)
            await until_following(server)
            kept = await server.client.delete(f"{HOOKS}/config-alarm", headers=admin)
            await server.call("calculate", {"expression": "1"}, headers=admin)
            told = await receiver.next()
        async with serving(world.reeve(settings=settings)) as server:
            left = (await server.client.get(HOOKS, headers=admin)).json()["webhooks"]

    assert (told["event"], kept.status_code, left) == ("tool_execution", 409, [])


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"quiet_start": "25:00"}, "quiet_start"),
        ({"quiet_start": "22:00"}, "both"),
        ({"timezone": "Mars"}, "Mars"),
    ],
)
def test_a_mistake_in_a_configured_webhook_names_it(change: dict[str, Any], problem: str) -> None:
    table = {"name": "alarm", "url": "https://a.example", "secret": "${secret:HOOK}", **change}
    with pytest.raises(ConfigError, match=f"(?s)alarm.*{problem}|{problem}.*alarm"):
        read_webhooks([table], lambda _: "s" * 20)


async def test_failures_are_retried_with_the_same_id_until_acknowledged(world: World) -> None:
    async with receiving(statuses=[500, 302]) as receiver, hooked(world, receiver) as (server, browser, _):
        await server.call("calculate", {"expression": "1"})
        got = [await receiver.next() for _ in range(3)]
        for _ in range(200):
            (row,) = (await browser.get(HOOKS)).json()["webhooks"]
            if row["delivered"]:
                break
            await asyncio.sleep(0.02)

    assert len({each["id"] for each in got}) == 1
    assert (row["delivered"], row["failed"], row["pending"], row["dead"]) == (1, 2, 0, 0)


async def test_a_dead_letter_is_listed_and_replayed(world: World) -> None:
    async with receiving(statuses=[500] * 3) as receiver, hooked(world, receiver) as (server, browser, hook):
        await server.call("calculate", {"expression": "1"})
        first, *_ = [await receiver.next() for _ in range(3)]
        dead: list[Any] = []
        for _ in range(200):
            dead = (await browser.get(f"{HOOKS}/{hook['id']}/deliveries")).json()["deliveries"]
            if dead:
                break
            await asyncio.sleep(0.02)
        replayed = await browser.post(f"{HOOKS}/{hook['id']}/replay", json={})
        again = await receiver.next()

    assert (dead[0]["event_id"], dead[0]["problem"], dead[0]["attempts"]) == (first["id"], "HTTP 500", 3)
    assert (replayed.json(), again["id"]) == ({"replayed": 1}, first["id"])


async def test_events_of_one_call_arrive_in_order_and_a_slow_endpoint_delays_nobody(world: World) -> None:
    async with receiving() as slow, receiving(statuses=[500]) as quick:
        slow.held.clear()
        allowed = Network(allow=(f"127.0.0.1:{slow.port}", f"127.0.0.1:{quick.port}"))
        settings = world.settings(network=allowed, policy=Policy(mode="accept_edits"))
        async with serving(world.reeve(settings=settings)) as server, server.browser() as browser:
            for each in (slow, quick):
                await browser.post(HOOKS, json={"url": each.url, "events": ["tool_execution"], "retry": RETRY})
            await until_following(server)
            await server.call("write_file", {"path": "a.txt", "content": "x"})
            got = [await quick.next() for _ in range(3)]
            waiting = slow.got.qsize()

    assert [each["data"]["status"] for each in got] == ["started", "started", "completed"]
    assert waiting == 0


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "http://127.0.0.1:1/", "file:///etc/passwd", "nonsense"])
async def test_a_url_that_the_guard_refuses_is_not_added(world: World, url: str) -> None:
    async with serving(world.reeve()) as server, server.browser() as browser:
        answer = await browser.post(HOOKS, json={"url": url})
        listed = (await browser.get(HOOKS)).json()["webhooks"]

    assert (answer.status_code, answer.json()["code"], listed) == (403, "E_URL_FORBIDDEN", [])


WORKER = """
import asyncio, sys
from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace
from toolreeve.config.sections.network import Network
from toolreeve.record.webhooks import RetryConfig, Webhook
from toolreeve.serve.webhook_dispatcher import WebhookDispatcher

async def main(work, state, url, port):
    allowed = Network(allow=(f"127.0.0.1:{port}",))
    settings = Settings(workspace=Workspace(dir=work), state=State(dir=state), network=allowed)
    async with Toolreeve(settings=settings) as reeve:
        hooks = reeve.internals.store.webhooks
        if not await hooks.list():
            await hooks.put(Webhook(id="one", url=url, secret="s" * 16, events=("tool_execution",)), now=0.0)
        dispatcher = WebhookDispatcher(reeve, hooks, draw=lambda: 0.5, poll=0.05)
        running = asyncio.create_task(dispatcher.run())
        while await hooks.cursor("record") is None:
            await asyncio.sleep(0.02)
        if "call" in sys.argv:
            for number in range(5):
                await reeve.call("calculate", expression=str(number))
            await reeve.audit.recent(last_n=1, filters={})
        print("ready", flush=True)
        await running

asyncio.run(main(*sys.argv[1:5]))
"""


async def test_nothing_is_lost_when_the_process_is_killed(world: World) -> None:
    async with receiving() as receiver:
        receiver.held.clear()
        args = [str(world.workspace), str(world.state), receiver.url, str(receiver.port)]
        first = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WORKER, *args, "call", stdout=asyncio.subprocess.PIPE
        )
        assert first.stdout is not None
        await first.stdout.readline()
        os.kill(first.pid, signal.SIGKILL)
        await first.wait()
        receiver.held.set()
        second = await asyncio.create_subprocess_exec(sys.executable, "-c", WORKER, *args)
        seen: set[str] = set()
        while len(seen) < 5:
            headers, _ = await asyncio.wait_for(receiver.got.get(), 90)
            seen.add(headers["x-toolreeve-id"])
        second.terminate()
        await second.wait()

    assert len(seen) == 5


async def test_the_record_does_not_tell_the_url_to_those_who_may_not_manage(world: World) -> None:
    async with serving(world.reeve()) as server:
        clerk = await server.token(Role.OPERATOR, scopes=[AccessScope.READ, AccessScope.APPROVE])
        body = {"url": "https://hooks.example.com/services/T00/private"}
        async with server.browser() as browser:
            added = await browser.post("/api/v1/webhooks", json=body)
        told = await server.client.get("/api/v1/audit?kind=webhook", headers=clerk)

    assert (added.status_code, [each["host"] for each in told.json()["records"]]) == (200, ["hooks.example.com"])
    assert "private" not in told.text
