"""Two gateways with one database, and what kills of both and of the database leave behind."""

import asyncio
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.approval.people import Person
from tests.record.backends import Backend
from tests.record.entries import opened
from tests.record.postgres.server import PostgresServer
from tests.world import World
from toolreeve import DangerLevel, ErrorCode, PermissionRule, ToolCall, Toolreeve, tool
from toolreeve.approval.decision import Decided
from toolreeve.config import Approval as ApprovalSettings
from toolreeve.config import State
from toolreeve.core.call import Principal
from toolreeve.core.limits import CircuitBreaker
from toolreeve.record.audit import Filter

ROOT = Path(__file__).parents[3]
BEA = Principal(user="bea")
ROUNDS = 12


def gateway(world: World, url: str, name: str, **options: object) -> Toolreeve:
    state = State(dir=str(world.state / name), url=url)
    settings = world.settings(state=state, approval=ApprovalSettings(dead_time=0.0))
    return world.reeve(settings=settings, **options)


async def test_a_call_that_waits_on_one_gateway_is_allowed_on_another(world: World, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    person = Person()
    async with gateway(world, url, "a", approve=person) as one, gateway(world, url, "b") as other:
        calling = asyncio.create_task(one.call("write_file", path="a.txt", content="x"))
        await person.asked.wait()
        (item,) = (await other.approvals.list()).items
        card = await other.approvals.show(item["id"])
        assert card is not None
        outcome = await other.approvals.decide(card["id"], digest=card["digest"], answer="allow", by=BEA)
        result = await asyncio.wait_for(calling, 30)
        seen = await other.audit.show(result.meta.call_id)
        verified = await one.audit.verify()

    assert outcome == Decided(call_id=card["call_id"], state="allowed")
    assert (result.success, result.meta.approved_by) == (True, "bea via python")
    assert [record.kind for record in seen] == ["approval", "intent", "call"]
    assert verified.ok, verified.problems


async def test_a_gateway_with_another_policy_or_other_settings_shows(world: World, postgres: PostgresServer) -> None:
    url = postgres.new_database()
    rule = PermissionRule(decision="deny", tool="bash")
    async with (
        gateway(world, url, "a") as one,
        gateway(world, url, "b") as same,
        gateway(world, url, "c", policy=[rule]) as stricter,
    ):
        found = {each["name"]: each for each in await one.internals.store.gateways()}
        shown = [found[each.internals.journal.process] for each in (one, same, stricter)]

    assert shown[0]["policy"] == shown[1]["policy"] != shown[2]["policy"]
    assert len({each["config"] for each in shown}) == 1


async def test_a_breaker_that_opens_at_one_gateway_is_open_at_the_other(world: World, postgres: PostgresServer) -> None:
    url = postgres.new_database()

    @tool(danger=DangerLevel.SAFE, circuit_breaker=CircuitBreaker(failure_threshold=2, recovery_timeout=60))
    def broken() -> str:
        """Fail."""
        raise RuntimeError("broken")

    async with gateway(world, url, "a", tools=[broken]) as one, gateway(world, url, "b", tools=[broken]) as other:
        results = [await each.call("broken") for each in (one, other, one, other)]

    codes = [result.error.code for result in results if result.error is not None]
    assert codes == [ErrorCode.TOOL_EXEC] * 2 + [ErrorCode.CIRCUIT_OPEN] * 2


async def test_what_one_gateway_changed_another_undoes(world: World, postgres: PostgresServer) -> None:
    url = postgres.new_database()

    async def approve(_: object) -> bool:
        return True

    (world.workspace / "a.txt").write_text("before")
    async with gateway(world, url, "a", approve=approve) as one:
        written = await one.run(ToolCall(tool="write_file", args={"path": "a.txt", "content": "x"}, session="s"))
        async with gateway(world, url, "b", approve=approve) as other:
            call = ToolCall(tool="undo", args={"call_id": written.meta.call_id}, session="s")
            undone = await other.run(call)

    assert undone.success
    assert (world.workspace / "a.txt").read_text() == "before"


async def test_without_the_database_nothing_runs_that_is_not_recorded(world: World) -> None:
    server = PostgresServer()
    effects = []

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def act() -> None:
        """Act."""
        effects.append(1)

    try:
        async with gateway(world, server.new_database(), "a", tools=[act]) as reeve:
            assert (await reeve.call("act")).success
            await asyncio.to_thread(server.stop)
            refused = await reeve.call("act")
            await asyncio.to_thread(server.start)
            while not (again := await reeve.call("act")).success:
                assert again.error is not None
                assert again.error.code is ErrorCode.AUDIT_ERROR
            records = await reeve.audit.recent(last_n=10, filters={"tool": "act"})
    finally:
        server.close()

    assert refused.error is not None
    assert refused.error.code is ErrorCode.AUDIT_ERROR
    assert "cannot be reached" in refused.error.message or "could not be written" in refused.error.message
    assert len(effects) == 2
    assert [record["success"] for record in records].count(True) == 2


@pytest.fixture
def chaotic_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    Backend.server = server
    yield server
    Backend.server = None
    server.close()


@asynccontextmanager
async def writer(path: Path, url: str, heard: set[tuple[str, str]]) -> AsyncIterator[asyncio.subprocess.Process]:
    """A gateway that writes records, and what it had acknowledged."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.record.writer", str(path)),
        cwd=ROOT,
        env={**os.environ, "TESTED_URL": url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    yield process
    if process.returncode is None:
        process.kill()
    rest = (await process.stdout.read()).decode()
    heard.update((words[0], words[1]) for line in rest.splitlines(keepends=True) if len(words := line.split()) == 2)
    await process.wait()


async def test_kills_of_gateways_and_crashes_of_the_database_lose_and_double_nothing(
    tmp_path: Path, chaotic_server: PostgresServer
) -> None:
    dice = random.Random(5)
    url = chaotic_server.new_database()
    heard: set[tuple[str, str]] = set()
    path = tmp_path / "a" / "x.db"
    Backend.urls[path] = url

    for number in range(ROUNDS):
        async with writer(path, url, heard) as one, writer(tmp_path / "b" / "x.db", url, heard):
            await asyncio.sleep(dice.uniform(0.05, 0.3))
            if number % 3 == 0:
                await asyncio.to_thread(chaotic_server.stop, "immediate")
                await asyncio.to_thread(chaotic_server.start)
                await asyncio.sleep(dice.uniform(0.05, 0.3))
            with suppress(ProcessLookupError):  # it found no database when it started
                one.kill()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE toolreeve.processes SET lease = now() - interval '1 s'")

    async with opened(path) as book:
        verified = await book.audit.verify()
        records = [record async for record in book.audit.stream(Filter())]
    counted = Counter((record.call_id, record.kind) for record in records if record.call_id)
    assert verified.state == "intact", verified.problems
    assert len(heard) > ROUNDS
    assert heard <= set(counted), "an acknowledged record is missing"
    assert max(counted.values()) == 1, "a record was written twice"
    ended = {call_id for call_id, kind in counted if kind in ("call", "lost")}
    assert {call_id for call_id, kind in counted if kind == "intent"} <= ended
