"""Transfer: copies everything from one database into an empty one, hashes included."""

from collections.abc import Sequence
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.archive import base_of
from toolreeve.record.chain import ChainStore, Head
from toolreeve.record.sql.connection import SqlConnection, placeholders

TABLES = (
    "undo",
    "budget",
    "rate",
    "pins",
    "approvals",
    "spent_states",
    "grants",
    "agent_runs",
    "agent_messages",
    "flow_facts",
    "content_labels",
    "credentials",
    "webhooks",
    "webhook_cursors",
    "deliveries",
    "tasks",
    "task_events",
)
NUMBERED = ("undo", "deliveries")
CHUNK = 500


def copy_chain(source: ChainStore, target: ChainStore) -> Head:
    """Returns the head of the copy. Raises ToolError if the target holds records already."""
    if target.next_head().seq:
        raise ToolError(ErrorCode.AUDIT_ERROR, "the database of state.url holds records already; choose an empty one")
    head = base_of(source)
    for chunk in source.rows():
        rows = [(seq, call_id.decode(), kind.decode(), body, digest) for seq, call_id, kind, body, digest in chunk]
        head = Head(rows[-1][0], rows[-1][4])
        target.append(rows, head)
    return head


def copy_tables(source: SqlConnection, target: SqlConnection) -> int:
    """Copy the rows of all tables; returns how many. Raises ToolError if one of them is not empty."""
    count = 0
    for table in TABLES:
        if target.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():  # noqa: S608 - a name of our own
            raise ToolError(ErrorCode.AUDIT_ERROR, f"the table {table} of state.url is not empty; choose another one")
        count += _copy(source, target, table)
    for table in NUMBERED:
        last = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), coalesce(max(id), 0) + 1, false) FROM {table}"  # noqa: S608
        target.execute(last)
    return count


def _copy(source: SqlConnection, target: SqlConnection, table: str) -> int:
    columns = {name: kind for _, name, kind, *_ in source.execute(f"PRAGMA table_info({table})")}
    chosen = ", ".join(f"CAST({name} AS BLOB)" if kind == "BLOB" else name for name, kind in columns.items())
    rows = source.execute(f"SELECT {chosen} FROM {table}").fetchall()  # noqa: S608 - names of our own
    insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders(len(columns))})"  # noqa: S608
    for start in range(0, len(rows), CHUNK):
        target.executemany(insert, [_storable(row) for row in rows[start : start + CHUNK]])
    return len(rows)


def _storable(row: Sequence[Any]) -> list[Any]:
    """PostgreSQL has no text with a NUL."""
    return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row]
