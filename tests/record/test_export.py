import csv
import importlib.util
import io
import json
from pathlib import Path

import pytest

from tests.record.entries import NOW, entry, failed, opened
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.audit import Filter
from toolreeve.record.export import COLUMNS


async def export(tmp_path: Path, form: str, wanted: Filter | None = None) -> bytes:
    stream = io.BytesIO()
    async with opened(tmp_path / "record.db") as book:
        book.journal.close(entry({"path": "=cmd|' /C calc'!A0", "n": 1}, session="=1+1"))
        book.journal.close(failed(entry({"path": 'ä, "b"\n'}), ErrorCode.TOOL_EXEC, "-2+3 is @risk"))
        await book.journal.note("policy", {"mode": "strict"})
        await book.audit.export(form, stream, wanted)
    return stream.getvalue()


async def test_json_lines_hold_every_record_whole(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (await export(tmp_path, "jsonl")).splitlines()]

    assert [line["seq"] for line in lines] == [1, 2, 3]
    assert lines[0]["args"] == {"path": "=cmd|' /C calc'!A0", "n": 1}
    assert lines[2] == {
        "seq": 3,
        "kind": "policy",
        "call_id": "",
        "timestamp": "2023-11-14T22:13:20.000Z",
        "v": 1,
        "ts": NOW,
        "mode": "strict",
    }


async def test_csv_has_a_row_for_each_record_and_a_column_for_each_field(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((await export(tmp_path, "csv")).decode(), newline="")))

    assert list(rows[0]) == list(COLUMNS)
    assert [(row["seq"], row["kind"], row["effect"], row["success"]) for row in rows] == [
        ("1", "call", "allow", "true"),
        ("2", "call", "allow", "false"),
        ("3", "policy", "", ""),
    ]
    assert json.loads(rows[1]["args"]) == {"path": 'ä, "b"\n'}
    assert json.loads(rows[2]["details"]) == {"mode": "strict"}


async def test_no_cell_of_a_csv_begins_like_a_formula(tmp_path: Path) -> None:
    rows = list(csv.reader(io.StringIO((await export(tmp_path, "csv")).decode(), newline="")))

    cells = [cell for row in rows for cell in row if cell]
    assert not [cell for cell in cells if cell[0] in "=+-@\t\r\n"]
    assert "'=1+1" in cells
    assert "'-2+3 is @risk" in cells


async def test_an_export_can_be_filtered(tmp_path: Path) -> None:
    lines = (await export(tmp_path, "jsonl", Filter(success=False))).splitlines()

    assert [json.loads(line)["seq"] for line in lines] == [2]


async def test_an_unknown_format_is_refused_with_the_available_ones(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="unknown format: 'xml'; available: jsonl, csv, parquet"):
        await export(tmp_path, "xml")


async def test_parquet_is_written_or_the_missing_package_is_named(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(ToolError) as refused:
            await export(tmp_path, "parquet")
        assert refused.value.suggestions == ("pip install 'toolreeve[parquet]'",)
    else:
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(io.BytesIO(await export(tmp_path, "parquet")))
        assert table.column_names == list(COLUMNS)
        assert table.column("success").to_pylist() == [True, False, None]
