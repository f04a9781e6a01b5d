"""A2A: a small task with our durable store against the SDK's agent with its store in memory.

Both servers run in processes of their own, with the same client, in rounds that take turns. The SDK's telemetry is off.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
from tests.conformance.gateway import running
from tests.peers.programs import free_port

from bench.measure import Row

ROUNDS = 5
REQUESTS = 200
TOGETHER = 8
STREAMS = 60
PARKED = 200
MEGABYTE = 1024 * 1024
HEADERS = {"a2a-version": "1.0"}
SETTINGS = "[a2a]\nrequests_per_minute = 0\n"


class AgentUnderTest:
    def __init__(self, url: str, text: str, process: psutil.Process) -> None:
        self.url = url
        self.text = text
        self.process = process
        self.rates: list[float] = []
        self.cpu: list[float] = []

    async def send(self, client: httpx2.AsyncClient, text: str = "") -> dict[str, Any]:
        answer = await client.post(self.url, json=self.body("SendMessage", text), headers=HEADERS)
        result: dict[str, Any] = answer.json()["result"]["task"]
        return result

    def body(self, method: str, text: str = "") -> dict[str, Any]:
        message = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text or self.text}]}
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}

    async def round(self, client: httpx2.AsyncClient) -> None:
        before, began = sum(self.process.cpu_times()[:2]), time.perf_counter()
        for _ in range(REQUESTS // TOGETHER):
            tasks = await asyncio.gather(*(self.send(client) for _ in range(TOGETHER)))
            assert {task["status"]["state"] for task in tasks} == {"TASK_STATE_COMPLETED"}
        self.rates.append(REQUESTS / (time.perf_counter() - began))
        self.cpu.append((sum(self.process.cpu_times()[:2]) - before) / REQUESTS)

    async def first_event(self, client: httpx2.AsyncClient) -> float:
        began = time.perf_counter()
        body = self.body("SendStreamingMessage")
        async with client.stream("POST", self.url, json=body, headers=HEADERS) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    return time.perf_counter() - began
        raise AssertionError("no event came")


@contextmanager
def _ours(place: Path) -> Iterator[AgentUnderTest]:
    (place / "work").mkdir()
    (place / "config" / "toolreeve").mkdir(parents=True)
    (place / "config" / "toolreeve" / "toolreeve.toml").write_text(SETTINGS)
    env = {"HOME": str(place), "XDG_CONFIG_HOME": str(place / "config"), "XDG_STATE_HOME": str(place / "state")}
    command = [sys.executable, "-m", "toolreeve", "serve", "--port", "0", "--workspace", str(place / "work")]
    with running(command, Path.cwd(), env=env) as url:
        port = int(url.split(":")[2].partition("/")[0])
        yield AgentUnderTest(f"http://127.0.0.1:{port}/a2a", "/calculate expression=1", _listener(port))


@contextmanager
def _theirs() -> Iterator[AgentUnderTest]:
    port = free_port()
    env = {**os.environ, "OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "false"}
    with subprocess.Popen([sys.executable, "-m", "tests.upstream.a2a_hello", str(port)], env=env) as process:
        try:
            yield AgentUnderTest(f"http://127.0.0.1:{port}/rpc", "you", psutil.Process(process.pid))
        finally:
            process.terminate()


def _listener(port: int) -> psutil.Process:
    found = (each.pid for each in psutil.net_connections("tcp") if each.laddr and each.laddr.port == port)
    return psutil.Process(next(pid for pid in found if pid))


async def a2a() -> list[Row]:
    """SendMessage, the first event of a stream, and the memory of parked tasks."""
    with tempfile.TemporaryDirectory() as place, _ours(Path(place)) as ours, _theirs() as theirs:
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            await _until_up(client, theirs.url)
            for number in range(ROUNDS + 1):
                for each in (ours, theirs):
                    await each.round(client)
                    if not number:  # the first round only warms up
                        each.rates.clear()
                        each.cpu.clear()
            first = [[await each.first_event(client) for each in (ours, theirs)] for _ in range(STREAMS)]
            before = ours.process.memory_info().rss
            for number in range(PARKED):
                task = await ours.send(client, f"/write_file path={number}.txt content=x")
                assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            grown = ours.process.memory_info().rss - before
    return [_sending(ours, theirs), _streaming(first), _parking(grown)]


def _sending(ours: AgentUnderTest, theirs: AgentUnderTest) -> Row:
    rates = [statistics.median(each.rates) for each in (ours, theirs)]
    cpu = [statistics.median(each.cpu) for each in (ours, theirs)]
    ratio = statistics.median(mine / other for mine, other in zip(ours.rates, theirs.rates, strict=True))
    value = f"{rates[0]:.0f}/s ({cpu[0] * 1e3:.1f} ms CPU) against {rates[1]:.0f}/s ({cpu[1] * 1e3:.1f} ms)"
    return Row(
        name="A2A SendMessage, durable, against the SDK in memory",
        value=value,
        ratio=ratio,
        target="≥ 1.0×",
        met=ratio >= 1.0,
    )


def _streaming(first: list[list[float]]) -> Row:
    middle, other = (statistics.median(each) for each in zip(*first, strict=True))
    best = min(mine for mine, _ in first)
    return Row(
        name="A2A first event of a stream, against the SDK in memory",
        value=f"{middle * 1e3:.1f} ms (best {best * 1e3:.1f}) against {other * 1e3:.1f} ms",
        ratio=middle / other,
        p50=middle,
        target="≤ 5 ms",
        met=middle <= 0.005,
    )


def _parking(grown: int) -> Row:
    return Row(
        name=f"A2A memory of {PARKED} parked tasks",
        value=f"{grown / MEGABYTE:.1f} MB",
        target="≤ 50 MB",
        met=grown <= 50 * MEGABYTE,
    )


async def _until_up(client: httpx2.AsyncClient, url: str) -> None:
    for _ in range(200):
        try:
            await client.get(url)
        except httpx2.ConnectError:
            await asyncio.sleep(0.05)
        else:
            return
    raise TimeoutError
