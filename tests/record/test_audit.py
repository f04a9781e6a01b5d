import sqlite3
from functools import partial
from pathlib import Path

import pytest

from tests.record.backends import refusing_records, store_at
from tests.record.entries import NOW, entry, failed, opened
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.audit import Audit, Filter
from toolreeve.record.sql.connection import SqlConnection

pytestmark = pytest.mark.usefixtures("database")


async def test_recent_shows_the_last_calls_newest_first_deferred_ones_included(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        for number in range(5):
            book.journal.close(entry({"n": number}))

        found = await book.audit.recent(last_n=3, filters={})

    assert [record["args"]["n"] for record in found] == [4, 3, 2]


async def test_recent_shows_how_calls_ended_not_what_was_intended(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        made = entry({}, changes=True)
        await book.journal.intend(made)
        written = book.journal.close(made)
        assert written is not None
        await written

        found = await book.audit.recent(last_n=10, filters={})

    assert [record["kind"] for record in found] == ["call"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"tool": "poke"}, ["c"]),
        ({"session": "s2"}, ["b"]),
        ({"user": "ada"}, ["c", "b", "a"]),
        ({"user": "eve"}, []),
        ({"success": "false"}, ["b"]),
        ({"success": "true"}, ["c", "a"]),
        ({"code": "E_DENIED"}, ["b"]),
        ({"code": "E_DENIED", "tool": "poke"}, []),
        ({"since": str(NOW)}, ["c", "b", "a"]),
        ({"until": str(NOW)}, []),
        ({"since": "2023-11-14T22:13:20Z", "until": "2023-11-14T22:13:21+00:00"}, ["c", "b", "a"]),
        ({"since": "2024-01-01"}, []),
        ({"tool": "' OR 1=1 --"}, []),
    ],
)
async def test_filters_select_records(tmp_path: Path, filters: dict[str, str], expected: list[str]) -> None:
    async with opened(tmp_path / "record.db") as book:
        book.journal.close(entry({"name": "a"}))
        book.journal.close(failed(entry({"name": "b"}, session="s2"), ErrorCode.DENIED, "no"))
        written = book.journal.close(entry({"name": "c"}, changes=True))
        assert written is not None
        await written

        found = await book.audit.recent(last_n=10, filters=filters)

    assert [record["args"]["name"] for record in found] == expected


@pytest.mark.parametrize(
    ("filters", "problem"),
    [
        ({"colour": "red"}, "unknown filter: colour; available: kind, tool"),
        ({"success": "perhaps"}, "success: expected true or false"),
        ({"since": "yesterday"}, "since: expected an ISO 8601 time"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_refused(filters: dict[str, str], problem: str) -> None:
    with pytest.raises(ToolError, match=problem) as refused:
        Filter.parse(filters)

    assert refused.value.code is ErrorCode.INVALID_PARAMS


async def test_pages_continue_where_the_last_one_ended(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.write(7)

        first = await book.audit.list(limit=4)
        second = await book.audit.list(limit=4, before=first[-1].seq)

    assert [record.seq for record in (*first, *second)] == [7, 6, 5, 4, 3, 2, 1]


async def test_everything_can_be_streamed_in_order(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.write(2_500)

        seqs = [record.seq async for record in book.audit.stream()]

    assert seqs == list(range(1, 2_501))


async def test_a_unique_prefix_of_a_call_id_is_enough(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        for name in ("abcdef01", "abcdef02", "xyzxyz01"):
            book.journal.close(entry({}, id=name))

        shown = [
            [record.call_id for record in await book.audit.show(name)] for name in ("abcdef", "abcdef02", "xyzxyz", "x")
        ]

    assert shown == [[], ["abcdef02"], ["xyzxyz01"], []]


def tampered(connection: SqlConnection, *, body: bytes, seq: int) -> None:
    query = "UPDATE audit SET body = ?, call_id = 'other'"
    columns = "" if isinstance(connection, sqlite3.Connection) else ", tool = NULL, ts = NULL"
    connection.execute(f"{query}{columns} WHERE seq = ?", (body, seq))


async def test_a_tampered_body_does_not_keep_the_rest_from_being_read(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    async with opened(path) as book:
        await book.write(4)
        for seq, body in ((1, b"no JSON"), (2, b"[1]"), (3, b'{"ts": "never"}')):
            tamper = partial(tampered, body=body, seq=seq)
            await book.store.transact(tamper)

    async with opened(path) as book:
        everything = [record.to_dict() for record in await book.audit.list()]
        filtered = await book.audit.list(Filter(tool="peek"))

    assert [record.get("unreadable") for record in everything] == [None, None, True, True]
    assert [record["timestamp"] for record in everything][1:] == [None, None, None]
    assert [record.seq for record in filtered] == [4]


async def test_the_record_of_a_running_process_can_be_read_by_another(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.write(3)
        store = store_at(book.path, read_only=True)
        await store.start()

        found = await Audit(store).list()
        await store.close()

    assert len(found) == 3


async def test_the_record_can_be_read_while_the_disk_refuses_new_ones(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.write(3)
        async with refusing_records(book.store):
            book.journal.close(entry({}))
            found = await book.audit.list()

    assert len(found) == 3
