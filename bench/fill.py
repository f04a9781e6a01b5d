"""Fills an audit log quickly, by writing the chain directly as the journal would."""

import asyncio
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from toolreeve.core import json
from toolreeve.record.chain import Entry, Tail
from toolreeve.record.sqlite.chain import SqliteChain
from toolreeve.record.sqlite.database import open_writer
from toolreeve.record.witness import Sighting, Witness

BODY = {
    "v": 1,
    "session": "bench",
    "user": "local",
    "role": "operator",
    "origin": "python",
    "tool": "read_file",
    "args": {"path": "src/toolreeve/pipeline.py", "encoding": "utf-8"},
    "decision": {"effect": "allow", "layer": "default", "rule": None, "reason": "Default mode: safe tools run unasked"},
    "approved_by": None,
    "success": True,
    "code": "",
    "message": "",
    "duration_ms": 0.041,
    "attempts": 1,
    "cached": False,
    "truncated": False,
    "labels": [],
    "output_length": 4096,
}


def entries(records: int) -> Iterator[Entry]:
    """Calls of the last seconds, one each; a few are of another tool, failed, or belong to other sessions."""
    now = time.time() - records
    for number in range(records):
        body = {**BODY, "ts": now + number}
        if number % 1000 == 0:
            body |= {"tool": "rare", "success": False, "code": "E_TIMEOUT", "session": f"s{number // 1000 % 50}"}
        yield f"{int((now + number) * 1000):011x}fill{number:08x}", "call", json.dumps(body)


async def fill(path: Path, records: int) -> None:
    await asyncio.to_thread(_fill, path, records)


def _fill(path: Path, records: int) -> None:
    connection = open_writer(path)
    connection.execute("PRAGMA synchronous = OFF")
    chain = SqliteChain(connection)
    tail = Tail(chain.next_head())
    rows = (tail.add(*entry) for entry in entries(records))
    while batch := list(islice(rows, 50_000)):
        with chain.transaction():
            chain.append(batch, tail.head)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    known = chain.witnessed()
    assert known is not None
    Witness(path).make(Sighting(known.identity, tail.head, time.time()))
    connection.execute("UPDATE witness SET since = 0, synced = ?", (tail.head.seq,))
    connection.close()
