"""`kill -9` at any moment loses no acknowledged record, and what was open is closed as lost by the next process."""

import asyncio
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.record.entries import entry, opened
from toolreeve.record.audit import Filter

ROOT = Path(__file__).parents[2]
ROUNDS = 25


def start(path: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.record.writer", str(path), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def kill_after(process: "subprocess.Popen[str]", lines: int) -> list[tuple[str, str]]:
    """What the process had acknowledged when it was killed, some lines after it began."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    heard = [process.stdout.readline() for _ in range(lines)]
    process.kill()
    heard += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    return [(words[0], words[1]) for line in heard if line.endswith("\n") and len(words := line.split()) == 2]


async def test_a_killed_process_loses_no_acknowledged_record(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    dice = random.Random(7)
    acknowledged: set[tuple[str, str]] = set()

    for _ in range(ROUNDS):
        printed = await asyncio.to_thread(lambda: kill_after(start(path), dice.randrange(1, 60)))
        acknowledged.update(printed)

    async with opened(path) as book:
        await book.write(1)
        verified = await book.audit.verify()
        rows = await book.store.read(
            lambda connection: connection.execute("SELECT call_id, kind FROM audit").fetchall()
        )
    kinds = Counter(kind for _, kind in rows)
    assert verified.ok, verified.problems
    assert len(acknowledged) > ROUNDS
    assert acknowledged <= set(rows)
    ended = {call_id for call_id, kind in rows if kind in ("call", "lost")}
    assert {call_id for call_id, kind in rows if kind == "intent"} <= ended
    assert kinds["lost"] > 0


async def test_two_processes_at_once_write_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    processes = [start(path, "10") for _ in range(2)]

    outputs = await asyncio.gather(*(asyncio.to_thread(process.communicate) for process in processes))

    async with opened(path) as book:
        verified = await book.audit.verify()
        calls = await book.audit.list(Filter(kind="call", tool="poke"), limit=1_000)
    assert [process.returncode for process in processes] == [0, 0]
    assert (verified.ok, verified.records) == (True, 2 * 8 * 10 * 3), verified.problems
    printed = {line.split()[0] for out, _ in outputs for line in out.splitlines() if line.endswith(" call")}
    assert {call.call_id for call in calls} == printed


async def test_a_call_that_was_open_when_its_process_died_is_closed_as_lost(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    program = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.record.entries import JournalFile, entry

async def main():
    book = JournalFile(Path(sys.argv[1]))
    await book.store.start()
    await book.journal.start()
    await book.journal.intend(entry({"path": "a.txt"}, changes=True, id="the open call"))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    command = [sys.executable, "-c", program, str(path)]
    await asyncio.to_thread(lambda: subprocess.run(command, cwd=ROOT, check=False))

    async with opened(path) as book:
        intent, lost = await book.audit.show("the open call")
    async with opened(path) as book:
        again = await book.audit.show("the open call")

    assert (intent.kind, lost.kind, len(again)) == ("intent", "lost", 2)
    assert (lost.body["success"], lost.body["tool"], lost.body["args"]) == (None, "poke", {"path": "a.txt"})
    assert "may have happened" in lost.body["message"]


async def test_an_open_call_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    async with opened(path) as book:
        made = entry({"path": "a"}, changes=True)
        await book.journal.intend(made)

        async with opened(path):
            pass
        kinds = [record.kind for record in await book.audit.show(made.call.id)]
        written = book.journal.close(made)
        assert written is not None
        await written

    assert kinds == ["intent"]


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from tests.record.entries import entry, opened
from toolreeve.core.errors import ErrorCode, ToolError

async def fill(book):
    while True:
        written = book.journal.close(entry({"text": "x" * 900}, changes=True))
        await written

async def main():
    async with opened(Path(sys.argv[1])) as book:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
        try:
            await fill(book)
        except ToolError as refused:
            assert refused.code is ErrorCode.AUDIT_ERROR
            print(refused.message)
        assert not book.store.healthy
        assert book.store.backlog == 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        await book.store.flush()
        assert book.store.healthy
        verified = await book.audit.verify()
        assert verified.ok, verified.problems

asyncio.run(main())
"""


async def test_a_full_disk_refuses_the_call_and_the_record_continues_after_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path / "record.db")]
    ended = await asyncio.to_thread(
        lambda: subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    )

    assert ended.returncode == 0, ended.stderr
    assert "could not be written" in ended.stdout
