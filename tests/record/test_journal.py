import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.record.backends import refusing_records, store_at
from tests.record.entries import NOW, JournalFile, entry, failed, opened
from toolreeve.core.call import ToolCall
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.core.snapshot import HEAD, MAX_TEXT, digest
from toolreeve.record.audit import AuditRecord, Filter
from toolreeve.record.journal import Journal

pytestmark = pytest.mark.usefixtures("database")


async def only(book: JournalFile, **filters: Any) -> AuditRecord:
    (record,) = await book.audit.list(Filter(**filters))
    return record


async def settle(book: JournalFile, closed: Entry) -> None:
    if (written := book.journal.close(closed)) is not None:
        await written


async def test_a_call_is_recorded_with_all_that_matters(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        made = entry({"path": "a.txt"}, session="s1", origin="mcp")
        await settle(book, made)

        record = await only(book)

    assert record.call_id == made.call.id
    assert record.to_dict() == {
        "seq": 1,
        "kind": "call",
        "call_id": made.call.id,
        "timestamp": "2023-11-14T22:13:20.000Z",
        "v": 1,
        "ts": NOW,
        "session": "s1",
        "user": "ada",
        "role": "admin",
        "origin": "mcp",
        "client": "",
        "workspace": "",
        "tool": "peek",
        "danger": "safe",
        "args": {"path": "a.txt"},
        "effects": [],
        "decision": {"effect": "allow", "layer": "mode", "rule": None, "reason": "safe tools are allowed"},
        "approved_by": None,
        "success": True,
        "code": "",
        "message": "",
        "duration_ms": 0.25,
        "waited_ms": 0.0,
        "stages_ms": [],
        "attempts": 1,
        "cached": False,
        "truncated": False,
        "labels": [],
        "output_length": 5,
    }


async def test_a_failure_is_recorded_with_its_code_and_message(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await settle(book, failed(entry({"path": "x"}), ErrorCode.FILE_NOT_FOUND, "x does not exist"))

        body = (await only(book)).body

    assert (body["success"], body["code"], body["message"]) == (False, "E_FILE_NOT_FOUND", "x does not exist")


async def test_a_call_that_only_reads_is_not_waited_for(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        assert book.journal.close(entry({"path": "a"})) is None


async def test_a_call_that_found_no_tool_is_recorded_without_waiting(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        lost = Entry(ToolCall(tool="raed_file", args={"path": "a"}), at=NOW, started=0.0)
        assert book.journal.close(failed(lost, ErrorCode.TOOL_NOT_FOUND, "no tool is called 'raed_file'")) is None

        body = (await only(book)).body

    assert (body["tool"], body["args"], body["decision"]) == ("raed_file", {"path": "a"}, None)


async def test_an_intent_is_on_disk_before_the_call_may_begin(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        made = entry({"path": "a.txt"}, changes=True)
        made.outcome = None

        await book.journal.intend(made)

        reader = store_at(book.path, read_only=True)
        await reader.start()
        (row,) = await reader.read(lambda connection: connection.execute("SELECT kind, call_id FROM audit").fetchall())
        await reader.close()
        body = (await only(book)).body
        assert (made.intended, row) == (True, ("intent", made.call.id))
        assert (body["danger"], body["effects"], body["success"]) == ("medium", ["write:a.txt"], None)


async def test_a_call_that_changes_something_returns_after_its_record(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        made = entry({"path": "a.txt"}, changes=True)
        await book.journal.intend(made)
        written = book.journal.close(made)
        assert written is not None
        await written

        records = await book.audit.show(made.call.id)

    assert [record.kind for record in records] == ["intent", "call"]


async def test_a_denied_change_is_recorded_before_it_returns(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        assert book.journal.close(failed(entry({}, changes=True), ErrorCode.DENIED, "no")) is not None


async def test_what_the_caller_does_with_its_arguments_later_does_not_reach_the_record(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        args: dict[str, Any] = {"path": "/etc/shadow", "deep": {"list": [1]}}
        await_nothing = book.journal.close(entry(args))
        args["path"] = "innocent.txt"
        args["deep"]["list"].append(2)

        body = (await only(book)).body

    assert await_nothing is None
    assert body["args"] == {"path": "/etc/shadow", "deep": {"list": [1]}}


async def test_what_a_tool_does_with_its_arguments_does_not_reach_the_outcome(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        args: dict[str, Any] = {"path": "a.txt", "edits": [{"old": "x"}]}
        made = entry(args, changes=True)
        await book.journal.intend(made)
        args["edits"].clear()
        args["path"] = "b.txt"
        await settle(book, made)

        body = (await only(book, kind="call")).body

    assert body["args"] == {"path": "a.txt", "edits": [{"old": "x"}]}


async def test_long_texts_are_kept_as_head_length_and_digest(tmp_path: Path) -> None:
    text = "0123456789" * MAX_TEXT
    async with opened(tmp_path / "record.db") as book:
        await settle(book, entry({"content": text, "path": "a"}, changes=True))

        body = (await only(book)).body

    cut = {"cut": text[:HEAD], "length": len(text), "sha256": digest(text.encode())}
    assert body["args"] == {"content": cut, "path": "a"}


async def test_no_digest_gives_away_a_secret_inside_a_long_text(tmp_path: Path) -> None:
    text = "x" * 5_000 + " password=hunter2 " + "y" * 5_000
    async with opened(tmp_path / "record.db") as book:
        await settle(book, entry({"content": text}))

        body = (await only(book)).body

    assert body["args"] == {"content": {"cut": "x" * HEAD, "length": len(text)}}


async def test_a_secret_is_written_nowhere(tmp_path: Path) -> None:
    secret = 'correct horse "battery" staple'
    async with opened(tmp_path / "record.db", [secret]) as book:
        spilled = entry({"note": f"it is {secret}!", secret: 1}, changes=True, session=secret)
        await book.journal.intend(spilled)
        await settle(book, failed(spilled, ErrorCode.TOOL_EXEC, f"cannot log in with {secret}"))
        await settle(book, entry({"command": f"echo {secret}"}))
        await book.journal.note("policy", {"by": secret})
        await book.store.flush()
        stored = book.stored_bytes()

    assert b"battery" not in stored
    assert stored.count(b"[redacted]") >= 7


async def test_a_value_under_a_secrets_name_is_written_nowhere(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await settle(book, entry({"user": "ada", "password": "hunter2", "headers": {"X-Api-Key": "hunter3"}}))

        body = (await only(book)).body
        stored = book.stored_bytes()

    assert body["args"] == {"user": "ada", "password": "[redacted]", "headers": {"X-Api-Key": "[redacted]"}}
    assert b"hunter" not in stored


async def test_a_note_is_a_link_of_the_chain_like_any_other(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await book.journal.note("policy", {"mode": "strict", "token": "abc"}, call_id="c1")

        record = await only(book)
        verified = await book.audit.verify()

    assert (record.kind, record.call_id) == ("policy", "c1")
    assert record.body == {"v": 1, "ts": NOW, "mode": "strict", "token": "[redacted]"}
    assert verified.ok


async def test_a_cancelled_intent_leaves_a_settled_call(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    async with opened(path) as book:
        made = entry({"path": "a"}, changes=True)
        intending = asyncio.ensure_future(book.journal.intend(made))
        await asyncio.sleep(0)
        intending.cancel()
        await asyncio.wait([intending])
        await settle(book, failed(made, ErrorCode.CANCELLED, "the call was cancelled"))

        kinds = [record.kind for record in await book.audit.show(made.call.id)]

    assert kinds == ["intent", "call"]


async def test_a_refused_intent_forbids_the_call(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        made = entry({"path": "a"}, changes=True)
        async with refusing_records(book.store):
            with pytest.raises(ToolError) as refused:
                await book.journal.intend(made)
        await settle(book, failed(made, ErrorCode.AUDIT_ERROR, "not recorded"))

        kinds = [record.kind for record in await book.audit.list()]

    assert (refused.value.code, made.intended, kinds) == (ErrorCode.AUDIT_ERROR, False, ["call"])


async def test_a_call_id_that_no_text_column_can_hold_is_recorded_all_the_same(tmp_path: Path) -> None:
    async with opened(tmp_path / "record.db") as book:
        await settle(book, entry({"path": "\ud800"}, id="id-\udfff", session="\udc80"))

        record = await only(book)
        verified = await book.audit.verify()

    assert (record.call_id, verified.ok) == ("id-?", True)


class Odd:
    """Something that JSON cannot say."""


def circular() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["ring"] = ring
    return ring


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"deeper": value}
    return value


@pytest.mark.parametrize(
    "args",
    [
        {"odd": Odd()},
        {"set": {1, 2}},
        {1: "number as a key", ("a",): 2},
        {"huge": 10**5_000, "nan": float("nan"), "inf": float("-inf")},
        {"bytes": b"\xff"},
        circular(),
        deep(10_000),
        {"many": list(range(200_000))},
        {str(number): number for number in range(20_000)},
        {"k" * 100_000: "v"},
        {"text": "\ud800" * 2_000},
    ],
    ids=[
        "object",
        "set",
        "keys",
        "numbers",
        "bytes",
        "circular",
        "deep",
        "long list",
        "wide",
        "long key",
        "surrogates",
    ],
)
async def test_arguments_that_are_not_json_are_recorded_in_bounds(tmp_path: Path, args: dict[str, Any]) -> None:
    async with opened(tmp_path / "record.db") as book:
        unresolved = Entry(ToolCall(tool="peek", args=args), at=NOW, started=0.0)
        await settle(book, failed(unresolved, ErrorCode.INVALID_PARAMS, "no"))
        await settle(book, entry({"path": "the next one"}))

        kinds = [record.kind for record in await book.audit.list()]
        size = await book.store.read(
            lambda connection: connection.execute("SELECT max(length(body)) FROM audit").fetchone()
        )

    assert kinds == ["call", "call"]
    assert size[0] < 100_000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=20,
)


@given(args=st.dictionaries(st.text(st.characters()), json_values, max_size=5))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_arguments_can_keep_a_record_from_being_written(tmp_path: Path, args: dict[str, Any]) -> None:
    journal = Journal(store_at(tmp_path / "record.db"), Redactor(["s3cret-value"]), time.time)

    assert journal.encode(journal.describe(entry(args)))


async def test_two_journals_of_one_file_make_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    async with opened(path) as one, opened(path) as two:
        for _ in range(20):
            await asyncio.gather(settle(one, entry({}, changes=True)), settle(two, entry({}, changes=True)))
        verified = await one.audit.verify()

    assert (verified.ok, verified.records) == (True, 40)
