"""Damage to the database, its WAL or its witness: an acknowledged record is present or reported."""

import asyncio
import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.record.entries import opened
from tests.record.test_crash import kill_after, start
from tests.record.test_verify import tamper, verify
from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace
from toolreeve.config.xdg import DATABASE
from toolreeve.record.chain import Head
from toolreeve.record.sqlite.chain import SqliteChain
from toolreeve.record.sqlite.schema import MIGRATIONS
from toolreeve.record.witness import SIZE, Sighting, Untrusted, Witness, parse

COUNT = 20
BEFORE_WITNESSES = 3
"""Migrations of the release before."""
Harm = Callable[[Path, random.Random], None]


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A record of twenty calls, properly closed."""
    path = tmp_path / "record.db"
    async with opened(path) as book:
        await book.write(COUNT)
    return path


def wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def remove_shared_memory(path: Path) -> None:
    path.with_name(path.name + "-shm").unlink(missing_ok=True)


def remove_wal(path: Path, _: random.Random) -> None:
    wal(path).unlink()


def cut_wal(path: Path, dice: random.Random) -> None:
    os.truncate(wal(path), dice.randrange(wal(path).stat().st_size))


def spoil_wal(path: Path, dice: random.Random) -> None:
    content = bytearray(wal(path).read_bytes())
    content[dice.randrange(len(content))] ^= 1
    wal(path).write_bytes(content)


def remove_wal_and_witness(path: Path, _: random.Random) -> None:
    wal(path).unlink()
    Witness(path).path.unlink()


def replace_wal(path: Path, _: random.Random) -> None:
    shutil.copy(path.with_name("older-wal"), wal(path))


def replace_all(path: Path, _: random.Random) -> None:
    shutil.copy(path.with_name("older.db"), path)
    shutil.copy(path.with_name("older-wal"), wal(path))


def replace_database(path: Path, _: random.Random) -> None:
    shutil.copy(path.with_name("older.db"), path)
    wal(path).unlink()


def killed(path: Path, dice: random.Random) -> set[tuple[str, str]]:
    """What two processes had acknowledged when they were killed; the files between the two are kept aside."""
    printed = kill_after(start(path), dice.randrange(10, 60))
    shutil.copy(path, path.with_name("older.db"))
    shutil.copy(wal(path), path.with_name("older-wal"))
    return {*printed, *kill_after(start(path), dice.randrange(60, 150))}


def present(path: Path) -> set[tuple[str, str]]:
    connection = sqlite3.connect(path)
    try:
        return set(connection.execute("SELECT call_id, kind FROM audit"))
    except sqlite3.DatabaseError:
        return set()
    finally:
        connection.close()


HARMS: list[Harm] = [
    remove_wal, cut_wal, cut_wal, cut_wal, spoil_wal, spoil_wal, remove_wal_and_witness, replace_wal, replace_all,
    replace_database,
]  # fmt: skip


@pytest.mark.parametrize(("seed", "harm"), list(enumerate(HARMS)))
async def test_after_a_kill_an_acknowledged_record_is_present_or_reported_missing(
    tmp_path: Path, seed: int, harm: Harm
) -> None:
    path = tmp_path / "record.db"
    dice = random.Random(seed)
    acknowledged = await asyncio.to_thread(killed, path, dice)
    harm(path, dice)
    remove_shared_memory(path)

    verified = await verify(path)

    missing = acknowledged - present(path)
    assert not missing or not verified.ok, f"{len(missing)} of {len(acknowledged)} are missing and nothing is said"


async def test_a_wal_removed_after_a_kill_is_reported_as_lost_with_numbers_and_times(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    dice = random.Random(0)
    await asyncio.to_thread(killed, path, dice)
    last = Witness(path).look().head.seq
    remove_wal(path, dice)
    remove_shared_memory(path)

    verified = await verify(path)

    (problem,) = verified.problems
    first = verified.head.seq + 1
    assert (verified.state, problem.seq, problem.gap) == ("lost", last, None)
    assert f"{last - first + 1} acknowledged records are missing from the end ({first} to {last})" in problem.text
    assert "until 2023-11-14T22:13:20Z" in problem.text


async def test_what_was_lost_stays_reported_after_later_calls_until_a_person_accepts_it(path: Path) -> None:
    older = path.read_bytes()
    async with opened(path) as book:
        await book.write(7)
    path.write_bytes(older)

    async with opened(path) as book:
        await book.write(3)
        (finding,) = book.journal.findings
    async with opened(path) as book:
        await book.write(3)
        again = book.journal.findings
    verified = await verify(path)
    async with opened(path) as book:
        await book.journal.accept(COUNT + 8, user="ada", reason="restored a backup")
    accepted = await verify(path)

    assert (finding.kind, finding.first, finding.last, again) == ("lost", COUNT + 1, COUNT + 7, [])
    assert [(each.state, each.seq, each.gap) for each in verified.problems] == [("lost", COUNT + 8, COUNT + 8)]
    assert (accepted.state, accepted.accepted, accepted.records) == ("intact", {COUNT + 8}, COUNT + 1 + 6 + 1)


async def test_tampering_is_not_accepted_with_a_gap(path: Path) -> None:
    older = path.read_bytes()
    async with opened(path) as book:
        await book.write(7)
    path.write_bytes(older)
    async with opened(path) as book:
        await book.journal.accept(COUNT + 8, user="ada", reason="")
    tamper(path, "UPDATE audit SET kind = 'x' WHERE seq = 4")

    verified = await verify(path)

    assert (verified.state, verified.problems[0].seq) == ("tampered", 4)


async def test_a_gap_that_was_made_larger_is_tampering(path: Path) -> None:
    older = path.read_bytes()
    async with opened(path) as book:
        await book.write(7)
    path.write_bytes(older)
    async with opened(path) as book:
        await book.journal.accept(COUNT + 8, user="ada", reason="")
    tamper(path, f"DELETE FROM audit WHERE seq = {COUNT}")

    assert (await verify(path)).state == "tampered"


def sighting(path: Path, seq: int) -> Sighting:
    connection = sqlite3.connect(path)
    try:
        known = SqliteChain(connection).witnessed()
        (digest,) = connection.execute("SELECT hash FROM audit WHERE seq = ?", (seq,)).fetchone() or (bytes(32),)
    finally:
        connection.close()
    assert known is not None
    return Sighting(known.identity, Head(seq, digest), 0)


def remove(path: Path) -> None:
    Witness(path).path.unlink()


def empty(path: Path) -> None:
    Witness(path).path.write_bytes(b"")


def flip(path: Path) -> None:
    content = bytearray(Witness(path).path.read_bytes())
    content[SIZE + 30] ^= 1
    Witness(path).path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(Witness(path).path, SIZE)


def earlier_form(path: Path) -> None:
    Witness(path).path.write_bytes(json.dumps({"seq": 0, "hash": "00" * 32}).encode())


def roll_back(path: Path) -> None:
    Witness(path).make(sighting(path, 5))


def roll_back_to_the_beginning(path: Path) -> None:
    Witness(path).make(sighting(path, 0))


def of_another_database(path: Path) -> None:
    Witness(path).make(Sighting(bytes(range(16)), Head(3, b"\x01" * 32), 0))


def link_elsewhere(path: Path) -> None:
    witness = Witness(path).path
    witness.rename(witness.with_name("moved"))
    witness.symlink_to("moved")


SPOILED = [
    (remove, "missing"), (empty, "malformed"), (flip, "malformed"), (cut, "malformed"), (earlier_form, "malformed"),
    (roll_back, "rolled back"), (roll_back_to_the_beginning, "rolled back"), (of_another_database, "foreign"),
    (link_elsewhere, "malformed"),
]  # fmt: skip


@pytest.mark.parametrize(("spoil", "kind"), SPOILED, ids=[spoil.__name__ for spoil, _ in SPOILED])
async def test_an_untrusted_witness_is_a_finding_that_outlives_the_next_start(
    path: Path, spoil: Callable[[Path], None], kind: str
) -> None:
    spoil(path)

    at_once = await verify(path)
    async with opened(path) as book:
        await book.write(2)
        findings = [finding.kind for finding in book.journal.findings]
    later = await verify(path)

    assert (at_once.state, later.state, findings) == ("unwitnessed", "unwitnessed", [kind])
    assert [problem.gap for problem in later.problems] == [COUNT + 1]
    assert f"the witness is {kind}" in later.problems[0].text


@pytest.mark.parametrize(("spoil", "kind"), SPOILED, ids=[spoil.__name__ for spoil, _ in SPOILED])
async def test_a_witness_spoiled_while_calls_are_recorded_is_found_at_the_next_of_them(
    path: Path, spoil: Callable[[Path], None], kind: str
) -> None:
    async with opened(path) as book:
        await book.write(1)
        spoil(path)
        await book.write(1)
        await book.write(1)
        found = [finding.kind for finding in book.journal.findings]
        failures = book.store.failures

    assert (found, failures) == ([kind], 0)
    assert [(problem.state, problem.gap) for problem in (await verify(path)).problems] == [("unwitnessed", COUNT + 3)]


async def test_a_database_replaced_by_another_is_reported_and_its_witness_is_on_record(
    path: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "record.db"
    async with opened(other) as book:
        await book.write(COUNT + 5)
    path.write_bytes(other.read_bytes())
    before = Witness(path).look()

    async with opened(path) as book:
        await book.write(1)
        (gap,) = await book.audit.list(limit=1, before=COUNT + 7)

    assert (gap.kind, gap.body["finding"]) == ("gap", "foreign")
    assert before.to_line().decode().strip() == gap.body["witness"]
    assert not (await verify(path)).ok


async def test_a_database_that_was_removed_is_reported_by_its_witness(path: Path) -> None:
    path.unlink()
    async with opened(path) as book:
        await book.write(1)

    (problem,) = (await verify(path)).problems

    assert (problem.seq, "whose last record was 20" in problem.text) == (1, True)


async def test_a_head_kept_elsewhere_shows_that_database_and_witness_were_both_rolled_back(path: Path) -> None:
    database, witness = path.read_bytes(), Witness(path).path.read_bytes()
    async with opened(path) as book:
        await book.write(5)
    kept = (await verify(path)).head.hash.hex()
    path.write_bytes(database)
    Witness(path).path.write_bytes(witness)

    assert (await verify(path)).ok, "this is the limit: both together are believed"
    assert (await verify(path, expect=kept)).state == "tampered"


async def test_each_commit_is_witnessed_before_it_is_acknowledged(path: Path) -> None:
    async with opened(path) as book:
        for number in range(1, 6):
            await book.journal.note("note", {"n": number})
            assert Witness(path).look().head.seq == COUNT + number


async def test_the_witness_reaches_the_disk_within_a_second_also_when_no_call_follows(path: Path) -> None:
    async with opened(path) as book:
        await book.write(1)
        assert book.journal.unsynced
        async with asyncio.timeout(30):
            while book.journal.unsynced:
                await asyncio.to_thread(os.sched_yield)


def as_before_witnesses(path: Path) -> None:
    """The files as a release left them that had a checkpoint file and no witness."""
    later = path.rename(path.with_name("later.db"))
    connection = sqlite3.connect(path)
    connection.executescript("".join(MIGRATIONS[:BEFORE_WITNESSES]) + f"PRAGMA user_version = {BEFORE_WITNESSES};")
    connection.execute("ATTACH ? AS later", (str(later),))
    connection.execute("INSERT INTO audit SELECT seq, call_id, kind, body, hash FROM later.audit")
    connection.execute("REPLACE INTO checkpoint SELECT * FROM later.checkpoint")
    (seq, digest) = connection.execute("SELECT seq, hash FROM checkpoint").fetchone()
    connection.commit()
    connection.close()
    Witness(path).path.unlink()
    checkpoint(path).write_text(json.dumps({"seq": seq, "hash": digest.hex()}))


def checkpoint(path: Path) -> Path:
    return path.with_name(path.name + ".checkpoint")


async def test_a_record_of_an_earlier_release_gets_a_witness_and_says_since_when(path: Path) -> None:
    as_before_witnesses(path)
    before = await verify(path)
    async with opened(path) as book:
        await book.write(1)
        (made,) = await book.audit.list(limit=1, before=COUNT + 2)

    verified = await verify(path)

    assert (before.state, before.since) == ("intact", None)
    assert (verified.state, verified.since, made.kind) == ("intact", COUNT + 1, "witness")
    assert not checkpoint(path).exists()


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (None, "unwitnessed"),
        ("", "unwitnessed"),
        ("[]", "unwitnessed"),
        (json.dumps({"seq": 3, "hash": "00" * 32}), "unwitnessed"),
        (json.dumps({"seq": 0, "hash": "11" * 32}), "unwitnessed"),
        (json.dumps({"seq": True, "hash": "11" * 32}), "unwitnessed"),
        (json.dumps({"seq": "3", "hash": "11" * 32}), "unwitnessed"),
        (json.dumps({"seq": -1, "hash": "11" * 32}), "unwitnessed"),
        (json.dumps({"seq": 3, "hash": "11"}), "unwitnessed"),
        (json.dumps({"seq": 3, "hash": "11" * 32}), "tampered"),
        (json.dumps({"seq": 25, "hash": "11" * 32}), "lost"),
    ],
)
async def test_an_upgrade_reports_what_the_earlier_checkpoint_file_reveals(
    path: Path, content: str | None, state: str
) -> None:
    as_before_witnesses(path)
    checkpoint(path).unlink()
    if content is not None:
        checkpoint(path).write_text(content)

    before = await verify(path)
    async with opened(path) as book:
        await book.write(1)

    assert (before.state, (await verify(path)).state) == (state, state)


async def test_a_start_that_was_killed_before_it_knew_of_its_witness_makes_no_finding(path: Path) -> None:
    tamper(path, "UPDATE witness SET since = NULL, synced = 0")

    async with opened(path) as book:
        await book.write(1)
        findings = book.journal.findings

    assert (findings, (await verify(path)).state) == ([], "intact")


async def test_two_processes_keep_one_witness(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    processes = [start(path, "20") for _ in range(2)]
    await asyncio.gather(*(asyncio.to_thread(process.communicate) for process in processes))

    verified = await verify(path)

    assert (verified.state, Witness(path).look().head) == ("intact", verified.head)


async def test_listeners_are_informed_of_a_gap(tmp_path: Path) -> None:
    settings = Settings(workspace=Workspace(dir=str(tmp_path)), state=State(dir=str(tmp_path / "state")))
    async with Toolreeve(settings=settings) as reeve, reeve.bus.subscribe() as events, asyncio.timeout(30):
        (tmp_path / "state" / "witness" / DATABASE).unlink()
        await reeve.call("calculate", expression="6 * 7")
        gap = await anext(event async for event in events if event.event == "record_gap")

    assert gap.data["finding"] == "missing"


@pytest.mark.parametrize("content", [b"x" * 2 * SIZE, bytes(2 * SIZE), b"\n" * 2 * SIZE])
def test_nothing_but_two_whole_lines_is_a_witness(content: bytes) -> None:
    with pytest.raises(Untrusted):
        parse(content)


def test_only_the_genesis_has_the_number_zero_or_the_zero_hash() -> None:
    for head in (Head(0, b"\x01" * 32), Head(4, bytes(32)), Head(2**60, b"\x01" * 32)):
        with pytest.raises(Untrusted):
            parse(Sighting(bytes(16), head, 0).to_line() * 2)
