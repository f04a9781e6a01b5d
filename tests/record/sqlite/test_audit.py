"""Filters and pages over a real table: the same records as a scan finds, found by index."""

import random
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolreeve.core import json
from toolreeve.core.errors import ToolError
from toolreeve.record.audit import Filter
from toolreeve.record.sqlite import audit
from toolreeve.record.sqlite.database import open_writer
from toolreeve.record.sqlite.schema import MIGRATIONS
from toolreeve.record.store import Store

COUNT = 5_000
START = 1_700_000_000.0
BEFORE_FILTER_COLUMNS = 6

Body = Mapping[str, Any]


def body(number: int, chance: random.Random) -> Body:
    """Written every second; one in a hundred began up to a day before."""
    late = chance.random() * 86_400 if chance.random() < 0.01 else chance.random() * 5
    failed = chance.random() < 0.1
    return {
        "ts": START + number - late,
        "tool": chance.choice(["read_file"] * 8 + ["write_file", "rare"]),
        "session": f"s{number // 700}",
        "user": chance.choice(["ann", "bob"]),
        "workspace": "/w",
        "success": not failed,
        "code": "E_DENIED" if failed else "",
    }


@pytest.fixture(scope="module")
def bodies() -> list[Body]:
    chance = random.Random(4)
    return [body(number, chance) for number in range(1, COUNT + 1)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, bodies: list[Body]) -> Path:
    path = tmp_path_factory.mktemp("audit") / "record.db"
    connection = open_writer(path)
    rows = [(seq, f"call{seq}", kind(seq), json.dumps(each), b"") for seq, each in enumerate(bodies, 1)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO audit (seq, call_id, kind, body, hash) VALUES (?, ?, ?, ?, ?)", rows)
    connection.execute("COMMIT")
    connection.close()
    return path


def kind(seq: int) -> str:
    return "approval" if seq % 997 == 0 else "call"


def matches(wanted: Filter, seq: int, each: Body) -> bool:
    fields = {**each, "kind": kind(seq)}
    equal = all(
        getattr(wanted, name) in (None, fields[name])
        for name in ("kind", "tool", "session", "user", "workspace", "code", "success")
    )
    after = wanted.since is None or each["ts"] >= wanted.since
    return equal and after and (wanted.until is None or each["ts"] < wanted.until)


def filters() -> Iterator[Filter]:
    chance = random.Random(7)
    choices: Mapping[str, list[Any]] = {
        "kind": ["call", "approval", "none"],
        "tool": ["read_file", "rare", "none"],
        "session": ["s0", "s5", "none"],
        "user": ["ann", "none"],
        "workspace": ["/w", "/v"],
        "code": ["E_DENIED", "", "none"],
        "success": [True, False],
        "since": [START - 90_000, START + 500, START + 4_990, START + 9_000],
        "until": [START - 50_000, START + 400, START + 2_000.5, START + 9_000],
    }
    for name, values in choices.items():
        yield from (Filter(**{name: value}) for value in values)
    for _ in range(60):
        names = chance.sample(sorted(choices), chance.randint(2, 4))
        yield Filter(**{name: chance.choice(choices[name]) for name in names})


async def test_every_filter_finds_what_a_scan_finds(path: Path, bodies: list[Body]) -> None:
    store = Store(path, read_only=True)
    await store.start()
    try:
        for wanted in filters():
            expected = [seq for seq, each in enumerate(bodies, 1) if matches(wanted, seq, each)]
            page = await store.audit.page(wanted, before=None, limit=50)
            assert [record.seq for record in page] == expected[-50:][::-1], wanted
            rest = await store.audit.page(wanted, before=page[-1].seq if page else 1, limit=7)
            assert [record.seq for record in rest] == expected[:-50][-7:][::-1], wanted
            found: list[int] = []
            while chunk := await store.audit.chunk(wanted, after=found[-1] if found else 0):
                found += [record.seq for record in chunk]
            assert found == expected, wanted
    finally:
        await store.close()


def test_no_filter_reads_the_whole_table_or_sorts_it(path: Path) -> None:
    connection = open_writer(path)
    for wanted in filters():
        values = {name: getattr(wanted, name) for name in Filter.__dataclass_fields__}
        query = f"SELECT seq FROM audit WHERE seq BETWEEN 0 AND 9{audit._conditions(connection, values)}"
        plan = connection.execute(f"EXPLAIN QUERY PLAN {query} ORDER BY seq DESC LIMIT 9", values).fetchall()
        steps = [step for *_, step in plan]
        assert all("SEARCH" in step or "CORRELATED" in step for step in steps), (wanted, steps)
    blocks = {"low": 0, "high": 9, "since": None, "until": None}
    steps = [step for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {audit._BLOCKS}", blocks)]
    connection.close()
    assert any("audit_time (<expr>=? AND ts>? AND ts<?)" in step for step in steps), steps


def test_the_rarest_of_several_filters_leads(path: Path) -> None:
    connection = open_writer(path)
    values = dict.fromkeys(Filter.__dataclass_fields__) | {
        "tool": "read_file",
        "kind": "approval",
        "user": "ann",
    }

    conditions = audit._conditions(connection, values)

    connection.close()
    assert conditions.startswith(" AND kind = :kind AND kind <> 'call' AND EXISTS"), conditions


def test_what_most_records_hold_is_compared_last(path: Path) -> None:
    connection = open_writer(path)
    values = dict.fromkeys(Filter.__dataclass_fields__) | {"kind": "call", "success": True, "user": "ann"}

    conditions = audit._conditions(connection, values)

    connection.close()
    assert conditions == " AND user = :user AND kind = :kind AND success = :success"


async def test_a_filter_on_a_record_of_an_earlier_release_says_how_to_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    connection = sqlite3.connect(path)
    script = "".join(f"{migration};" for migration in MIGRATIONS[:BEFORE_FILTER_COLUMNS])
    connection.executescript(script + f"PRAGMA user_version = {BEFORE_FILTER_COLUMNS};")
    connection.close()
    store = Store(path, read_only=True)
    await store.start()

    assert await store.audit.page(Filter(), before=None, limit=1) == []
    with pytest.raises(ToolError, match="earlier release"):
        await store.audit.page(Filter(tool="x"), before=None, limit=1)
    await store.close()
