"""Callers that are killed at random points, and a person who answers from another process.

`kill ROUNDS FOLDER`: each round a forked process asks, and is killed while it waits, is answered, runs or records.
`mix CALLS FOLDER`: calls with random answers, cancels, timeouts and restarts, answered by another process.
Prints a JSON summary. A mark in the file `ran` is one execution.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Coroutine
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.approval.clients import Client
from toolreeve import Toolreeve, tool
from toolreeve.approval.pending import write_answer
from toolreeve.approval.request import Answer
from toolreeve.config import Approval, Settings, State, Workspace
from toolreeve.core.call import ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.result import ToolResult
from toolreeve.record.pending import PendingStore
from toolreeve.record.store import Store

FOLDER = Path(sys.argv[3])
KILL_WITHIN = 0.15
IMPORTED_BEFORE_FORKS = ("toolreeve.approval.broker", "toolreeve.policy.offers", "toolreeve.policy.question_facts")
"""Imported for a first question: a child would be killed while it imports them."""


@tool(name="mark", danger=DangerLevel.HIGH)
async def mark(number: int) -> str:
    """Leaves a mark."""
    with (FOLDER / "ran").open("a") as file:
        file.write(f"{number}\n")
    return "marked"


def runtime(timeout: float = 60.0) -> Toolreeve:
    settings = Settings(
        workspace=Workspace(dir=str(FOLDER / "work")),
        state=State(dir=str(FOLDER / "state")),
        approval=Approval(timeout=timeout, dead_time=0.0),
    )
    return Toolreeve(settings=settings, tools=[mark], builtin=False, mcp_servers={}, approve=())


async def call(reeve: Toolreeve, number: int, *, asks: bool = True) -> ToolResult:
    """By a client whose form is never answered, or that shows none."""
    client = Client() if asks else Client(capabilities={})
    made = ToolCall(tool="mark", args={"number": number}, session="s", session_issued=True, origin="mcp", peer=client)
    return await reeve.run(made)


def fork(work: Coroutine[Any, Any, None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work)
        finally:
            os._exit(0)
    work.close()
    return child


async def answer_all(seed: int) -> None:
    """Allows or denies whatever is pending, after a while, until killed."""
    chance = random.Random(seed)
    store = Store(FOLDER / "state" / "toolreeve.db")
    await store.start()
    pending = PendingStore(store.pending, time.time)
    while True:
        page = await pending.page(states=("pending",), limit=100)
        for row in page.rows:
            granted = chance.random() < 0.8
            answer = Answer(granted=granted, by="bea", approver="bea", channel="phone")
            done = await pending.vote(row.id, write_answer(answer))
            if done:
                with (FOLDER / "answered").open("a") as file:
                    file.write(f"{row.id} {int(granted)}\n")
        await asyncio.sleep(chance.uniform(0.0, 0.02))


async def ask_once(number: int, ready: int) -> None:
    async with runtime() as reeve:
        os.write(ready, b"x")
        await call(reeve, number)


def kill_rounds(rounds: int) -> dict[str, Any]:
    for module in IMPORTED_BEFORE_FORKS:
        import_module(module)
    chance = random.Random(rounds)
    asyncio.run(prepare())
    answering = fork(answer_all(0))
    for number in range(rounds):
        if number % 25 == 24:
            end(answering)
            answering = fork(answer_all(number))
        reader, writer = os.pipe()
        asking = fork(ask_once(number, writer))
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        time.sleep(chance.uniform(0.0, KILL_WITHIN))
        end(asking)
    end(answering)
    return asyncio.run(examine(rounds))


def end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


async def prepare() -> None:
    (FOLDER / "work").mkdir(exist_ok=True)
    async with runtime():
        pass


async def examine(calls: int) -> dict[str, Any]:
    """After a restart every call is made once more, by a client that cannot be asked."""
    async with runtime() as reeve:
        states = [row.state for row in await reeve.approvals.store.list(pending_only=False)]
        for number in range(calls):
            await call(reeve, number, asks=False)
        rows = await reeve.approvals.store.list(pending_only=False)
        verified = await reeve.audit.verify()
    marks = (FOLDER / "ran").read_text().split() if (FOLDER / "ran").exists() else []
    used = [row for row in rows if row.state == "used"]
    granted = {row.question["args"]["number"] for row in used if row.answer and row.answer["granted"] is True}
    return {
        "states": {state: states.count(state) for state in sorted(set(states))},
        "most_runs": max((marks.count(mark) for mark in set(marks)), default=0),
        "ran": len(set(marks)),
        "ran_without_answer": sorted(set(map(int, marks)) - granted),
        "chain": verified.ok,
    }


async def mix(calls: int) -> dict[str, Any]:
    """Answers, cancels, timeouts and restarts in random order, with another process that answers."""
    chance = random.Random(calls)
    done = 0
    while done < calls:
        size = min(chance.randint(60, 140), calls - done)
        async with runtime(timeout=chance.choice((0.02, 0.1, 5.0))) as reeve:
            tasks = [asyncio.create_task(call(reeve, done + number)) for number in range(size)]
            for task in tasks:
                if chance.random() < 0.3:
                    asyncio.get_running_loop().call_later(chance.uniform(0.0, 0.4), task.cancel)
            await asyncio.wait(tasks, timeout=chance.uniform(0.5, 6.0))
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        done += size
    return {}


def mix_calls(calls: int) -> dict[str, Any]:
    asyncio.run(prepare())
    answering = fork(answer_all(1))
    try:
        asyncio.run(mix(calls))
    finally:
        end(answering)
    return asyncio.run(examine(calls))


if __name__ == "__main__":
    count = int(sys.argv[2])
    print(json.dumps(kill_rounds(count) if sys.argv[1] == "kill" else mix_calls(count)))
