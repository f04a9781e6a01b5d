"""Endpoints of the record: query, chain status, verification and export."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import Response, StreamingResponse
from typing_extensions import TypedDict

from toolreeve.record.audit import AuditRecord, Filter
from toolreeve.record.chain import GENESIS
from toolreeve.record.verify import Verification
from toolreeve.serve.api.calls import hide_arguments
from toolreeve.serve.api.cursors import read_cursor, write_cursor
from toolreeve.serve.api.endpoint import SSE, ApiRequest, Body, Endpoints, Query
from toolreeve.serve.api.services import ApiServices
from toolreeve.serve.api.streams import event_stream, frame
from toolreeve.serve.tokens import AccessScope

PARTS = 60
audit = Endpoints("audit")
Format = Literal["jsonl", "csv", "parquet"]
_TYPES: Mapping[Format, str] = {
    "jsonl": "application/jsonl",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
_Text = Annotated[str | None, Field(max_length=200)]


class AuditFilter(Query):
    kind: _Text = None
    tool: _Text = None
    session: _Text = None
    user: _Text = None
    code: _Text = None
    success: Literal["true", "false"] | None = None
    since: Annotated[str | None, Field(max_length=40, description="ISO 8601, epoch seconds, or an age: 1h.")] = None
    until: Annotated[str | None, Field(max_length=40)] = None

    def to_filter(self) -> Filter:
        """Raises ToolError."""
        names = AuditFilter.model_fields
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return Filter.parse(given)


class AuditQuery(AuditFilter):
    cursor: Annotated[str | None, Field(max_length=100)] = None
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class ExportQuery(AuditFilter):
    format: Format = "jsonl"


class AuditPage(TypedDict):
    """Each record has its number `seq`, its `hash` and the one before it, `prev`, besides what it records."""

    records: list[dict[str, Any]]
    cursor: str | None


class AuditStatus(TypedDict):
    """`state` is what the last verification found; None before the first. `parts` are equal parts of the record, from
    the first to the last: ok, broken, or unknown."""

    records: int
    head: str
    state: str | None
    verified_at: float | None
    broken_at: int | None
    parts: list[Literal["ok", "broken", "unknown"]]


class VerifyBody(Body):
    expect: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$", description="A head hash kept elsewhere.")] = None


class VerifyReport(TypedDict):
    ok: bool
    state: str
    records: int
    head: str
    problems: list[dict[str, Any]]
    unlisted: int


@audit.get("/audit")
async def list_records(request: ApiRequest, query: AuditQuery) -> AuditPage:
    """Query the record, newest first."""
    log = request.services.reeve.audit
    before = None if query.cursor is None else read_cursor("audit", query.cursor)
    found = await log.list(request.view.narrow(query.to_filter()), limit=query.limit, before=before)
    numbers = {seq for record in found for seq in (record.seq, record.seq - 1)}
    hashes = await log.hashes(sorted(numbers))
    rows = [{**_shown(request, each), **_links(each.seq, hashes)} for each in found]
    last = write_cursor("audit", found[-1].seq) if len(found) == query.limit else None
    return {"records": rows, "cursor": last}


@audit.get("/audit/status")
async def show_audit_status(request: ApiRequest) -> AuditStatus:
    """The state of the hash chain, as of the last verification."""
    log = request.services.reeve.audit
    records = await log.last()
    chain = request.services.chain
    return {
        "records": records,
        "head": (await log.hashes([records])).get(records, GENESIS.hex()),
        "state": chain.state,
        "verified_at": chain.verified_at,
        "broken_at": chain.broken_at,
        "parts": [_part(number, records, request.services) for number in range(PARTS)],
    }


@audit.post("/audit/verify", AccessScope.READ, returns=VerifyReport, streams=True)
async def verify_record(request: ApiRequest, body: VerifyBody) -> Any:
    """Check every link of the record. `Accept: text/event-stream` streams progress."""
    if SSE in request.http.headers.get("accept", ""):
        return event_stream(_verify_frames(request.services, body.expect))
    return await _verify(request.services, body.expect, lambda _: None)


@audit.get("/audit/export", produces=tuple(_TYPES.values()))
async def export_record(request: ApiRequest, query: ExportQuery) -> Response:
    """Export the record as a stream of JSON Lines, CSV or Parquet, oldest first."""
    wanted = request.view.narrow(query.to_filter())
    pieces = request.services.reeve.audit.stream_export(query.format, wanted, lambda each: _shown(request, each))
    first = await anext(pieces, b"")  # a format whose extra is missing is an error before the response begins
    headers = {"content-disposition": f'attachment; filename="audit.{query.format}"'}
    return StreamingResponse(_rejoin(first, pieces), media_type=_TYPES[query.format], headers=headers)


async def _rejoin(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in rest:
        yield each


def _shown(request: ApiRequest, record: AuditRecord) -> dict[str, Any]:
    values = record.to_dict()
    return values if request.view.reveals(record.body) else hide_arguments(values)


def _links(seq: int, hashes: Mapping[int, str]) -> dict[str, str | None]:
    return {"hash": hashes.get(seq), "prev": GENESIS.hex() if seq == 1 else hashes.get(seq - 1)}


def _part(number: int, records: int, services: ApiServices) -> Literal["ok", "broken", "unknown"]:
    chain = services.chain
    if chain.state is None or chain.verified_at is None:
        return "unknown"
    if chain.broken_at is None:
        return "ok"
    return "ok" if (number + 1) * records / PARTS < chain.broken_at else "broken"


async def _verify(services: ApiServices, expect: str | None, progress: Any) -> VerifyReport:
    found = await services.reeve.audit.verify(expect=expect, progress=progress)
    services.chain.state = found.state
    services.chain.verified_at = services.now()
    services.chain.broken_at = min((each.seq for each in found.problems), default=None)
    return _report(found)


def _report(found: Verification) -> VerifyReport:
    return {
        "ok": found.ok,
        "state": found.state,
        "records": found.records,
        "head": found.head.hash.hex(),
        "problems": [each.to_dict() for each in found.problems],
        "unlisted": found.unlisted,
    }


async def _verify_frames(services: ApiServices, expect: str | None) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    total = await services.reeve.audit.last()
    counts: asyncio.Queue[int] = asyncio.Queue()
    verifying = asyncio.create_task(
        _verify(services, expect, lambda count: loop.call_soon_threadsafe(counts.put_nowait, count))
    )
    verifying.add_done_callback(lambda _: counts.put_nowait(-1))
    while (count := await counts.get()) >= 0:
        yield frame("progress", {"checked": count, "total": total})
    yield frame("result", await verifying)
