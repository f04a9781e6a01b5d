"""Export of the record as JSON Lines, CSV or Parquet.

CSV and Parquet have one row per record, with nested values as JSON. A spreadsheet must not run a caller's text: CSV
cells that begin like a formula are prefixed with an apostrophe.
"""

import contextlib
import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError

COLUMNS = (
    "seq",
    "timestamp",
    "kind",
    "call_id",
    "session",
    "user",
    "role",
    "origin",
    "tool",
    "args",
    "effect",
    "layer",
    "rule",
    "reason",
    "approved_by",
    "success",
    "code",
    "message",
    "duration_ms",
    "attempts",
    "cached",
    "truncated",
    "labels",
    "output_length",
    "details",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_ELSEWHERE = frozenset(COLUMNS) | {"v", "ts", "decision"}

Row = Mapping[str, Any]
Write = Callable[[Sequence[Row]], None]


class Pieces(io.BytesIO):
    """A stream to write to, whose bytes are taken away as they come."""

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0

    def tell(self) -> int:
        """Of all that was written: Parquet notes where its parts begin."""
        return self._taken + super().tell()

    def take(self) -> bytes:
        data = self.getvalue()
        self._taken += len(data)
        self.seek(0)
        self.truncate()
        return data


def writer(form: str, stream: IO[bytes]) -> AbstractContextManager[Write]:
    """A function that writes chunks of records. Raises ToolError for an unknown format."""
    if form not in _WRITERS:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"unknown format: {form!r}; available: {', '.join(_WRITERS)}")
    return _WRITERS[form](stream)


@contextlib.contextmanager
def _json_lines(stream: IO[bytes]) -> Iterator[Write]:
    yield lambda rows: stream.writelines(json.dumps(row) + b"\n" for row in rows)


@contextlib.contextmanager
def _csv(stream: IO[bytes]) -> Iterator[Write]:
    text = io.TextIOWrapper(stream, encoding="utf-8", errors="backslashreplace", newline="", write_through=True)
    lines = csv.writer(text)
    lines.writerow(COLUMNS)
    try:
        yield lambda rows: lines.writerows([_cell(value) for value in _flat(row)] for row in rows)
    finally:
        text.flush()
        text.detach()


@contextlib.contextmanager
def _parquet(stream: IO[bytes]) -> Iterator[Write]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ToolError(
            ErrorCode.AUDIT_ERROR,
            "Parquet needs the package pyarrow, which is not installed: pip install 'toolreeve[parquet]'",
            suggestions=("pip install 'toolreeve[parquet]'",),
        ) from None
    schema = pyarrow.schema([(name, getattr(pyarrow, _TYPES.get(name, "string"))()) for name in COLUMNS])

    def write(rows: Sequence[Row]) -> None:
        columns = zip(*(_typed(row) for row in rows), strict=True)
        file.write_table(pyarrow.table(dict(zip(COLUMNS, columns, strict=True)), schema=schema))

    with pyarrow.parquet.ParquetWriter(stream, schema) as file:
        yield write


_WRITERS: Mapping[str, Callable[[IO[bytes]], AbstractContextManager[Write]]] = {
    "jsonl": _json_lines,
    "csv": _csv,
    "parquet": _parquet,
}
FORMATS = tuple(_WRITERS)

_TYPES = {
    "seq": "int64",
    "success": "bool_",
    "duration_ms": "float64",
    "attempts": "int64",
    "cached": "bool_",
    "truncated": "bool_",
    "output_length": "int64",
}
_PYTHON: Mapping[str, tuple[type, ...]] = {"int64": (int,), "bool_": (bool,), "float64": (int, float)}


def _flat(row: Row) -> list[Any]:
    """The columns of a record; fields without a column go, as JSON, into the last."""
    decision = row.get("decision")
    fields = {**row, **decision} if isinstance(decision, Mapping) else dict(row)
    fields["details"] = {key: value for key, value in row.items() if key not in _ELSEWHERE} or None
    return [_plain(fields.get(column)) for column in COLUMNS]


def _plain(value: Any) -> Any:
    return json.dumps(value).decode() if isinstance(value, dict | list) else value


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _typed(row: Row) -> list[Any]:
    """The columns with values of the wrong type, as in a tampered record, left out."""
    values = []
    for column, value in zip(COLUMNS, _flat(row), strict=True):
        kind = _TYPES.get(column)
        if kind is None:
            values.append(value if value is None or isinstance(value, str) else str(value))
        else:
            values.append(value if type(value) in _PYTHON[kind] else None)
    return values
