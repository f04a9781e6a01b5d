"""Endpoints of calls: list, detail, histogram, cancel, rerun and undo."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from toolreeve.core import json
from toolreeve.core.call import RecordScope, ToolCall
from toolreeve.core.errors import ErrorCode
from toolreeve.core.secrets.redactor import MARK
from toolreeve.record.audit import AuditRecord, Filter
from toolreeve.record.journal import CALL, INTENT, LOST
from toolreeve.runtime.policy_file import difference
from toolreeve.serve.api.call_rows import CallRow, Outcome, main_argument, new_row, outcome_of
from toolreeve.serve.api.cursors import read_cursor, write_cursor
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints, Query
from toolreeve.serve.api.problems import Problem, not_found
from toolreeve.serve.api.running import DecidingPeer, own_sessions
from toolreeve.serve.api.tools import CallAccepted, Danger, ToolResultBody, find_tool, new_call, run_call
from toolreeve.serve.tokens import AccessScope

SCANNED = 5_000
"""Records that one request looks through for filters without an index."""
calls = Endpoints("calls")


class CallQuery(Query):
    q: Annotated[str | None, Field(max_length=200, description="A text in the telling argument, tool or code.")] = None
    tool: Annotated[str | None, Field(max_length=200)] = None
    client: Annotated[str | None, Field(max_length=200, description="The beginning of the client's name.")] = None
    outcome: Outcome | None = None
    decision: Literal["allow", "ask", "deny"] | None = None
    danger: Danger | None = None
    session: Annotated[str | None, Field(max_length=200)] = None
    since: Annotated[str | None, Field(max_length=40, description="ISO 8601, epoch seconds, or an age: 1h.")] = None
    until: Annotated[str | None, Field(max_length=40)] = None
    cursor: Annotated[str | None, Field(max_length=100)] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 100


class CallPage(TypedDict):
    """`cursor` continues the list; None at its end. `total` counts all calls if nothing is filtered."""

    calls: list[CallRow]
    cursor: str | None
    total: int | None


class CallStage(TypedDict):
    """`ms` is None where the record has no time of its own for the stage."""

    name: str
    state: Literal["done", "failed", "skipped"]
    ms: float | None
    note: str


class CallCopies(TypedDict):
    cli: str
    curl: str
    python: str


class CallDetail(CallRow):
    """`result` is kept in memory for recent calls of this server; None otherwise. `diff` is how a file that was
    written as a whole differs from what undo keeps of it."""

    args: dict[str, Any] | None
    stages: list[CallStage]
    result: dict[str, Any] | None
    records: list[dict[str, Any]]
    trial: dict[str, Any] | None
    diff: str
    copy: CallCopies | None


class UndoBody(Body):
    force: Annotated[bool, Field(description="Also where a file changed since.")] = False


class RerunBody(Body):
    session: Annotated[str | None, Field(max_length=200)] = None


class CallCancelled(TypedDict):
    call_id: str
    cancelled: bool


@calls.get("/calls")
async def list_calls(request: ApiRequest, query: CallQuery) -> CallPage:
    """List calls, newest first."""
    wanted = request.view.narrow(_filter(query))
    before = None if query.cursor is None else read_cursor("calls", query.cursor)
    found, before = await _scan(request, wanted, query, before)
    undo = await request.services.reeve.internals.store.changes.states([each.call_id for each in found])
    rows = [new_row(each, visible=request.view.reveals(each.body), undo=undo) for each in found]
    total = await request.services.reeve.audit.count_calls() if wanted == Filter(kind=CALL) else None
    return {"calls": rows, "cursor": None if before is None else write_cursor("calls", before), "total": total}


@calls.get("/calls/{call_id}")
async def show_call(request: ApiRequest, call_id: str) -> CallDetail:
    """Show a call: the stages of the road, arguments, result and records."""
    records = await find_records(request, call_id)
    last = records[-1]
    visible = request.view.reveals(last.body)
    undo = await request.services.reeve.internals.store.changes.states([last.call_id])
    row = new_row(last, visible=visible, undo=undo)
    args = last.body.get("args")
    trial = last.body.get("trial")
    return {
        **row,
        "args": args if visible and isinstance(args, dict) else None,
        "stages": stages_of(row, last.body.get("stages_ms")),
        "result": request.services.results.get(last.call_id) if visible else None,
        "records": [_shown(each, visible=visible) for each in records],
        "trial": trial if visible and isinstance(trial, dict) else None,
        "diff": await _written(request, last) if visible else "",
        "copy": _copies(request, row["tool"], args) if visible and isinstance(args, dict) else None,
    }


async def _written(request: ApiRequest, record: AuditRecord) -> str:
    args = record.body.get("args")
    content = args.get("content") if isinstance(args, Mapping) else None
    if not isinstance(content, str):
        return ""
    internals = request.services.reeve.internals
    after = internals.files.fingerprint_of(content.encode())
    for change in await internals.undo.changes(call_id=record.call_id):
        if change.change.after == after:
            before = await internals.undo.replaced(change.change)
            return "" if before is None else internals.redact(difference(before.decode(errors="replace"), content))
    return ""


@calls.post("/calls/{call_id}/cancel", AccessScope.CALL)
async def cancel_call(request: ApiRequest, call_id: str) -> CallCancelled:
    """Cancel a call that runs in this server."""
    reeve = request.services.reeve
    found = reeve.internals.calls.find(call_id)
    if found is not None and not request.credential.sees_all and not is_own(request, found):
        raise Problem(403, "only the credential that made it, or one with the scope approve, may cancel it")
    if not reeve.cancel(call_id):
        raise Problem(409, f"no call {call_id!r:.100} runs in this server", code=ErrorCode.CANCELLED)
    return {"call_id": call_id, "cancelled": True}


@calls.post(
    "/calls/{call_id}/rerun", AccessScope.CALL, returns=ToolResultBody, streams=True, statuses={202: CallAccepted}
)
async def rerun_call(request: ApiRequest, call_id: str, body: RerunBody) -> Response:
    """Run a call again as a new one, with the arguments on record."""
    last = (await find_records(request, call_id))[-1]
    args = last.body.get("args")
    if not request.view.reveals(last.body) or not isinstance(args, dict):
        raise Problem(403, "the arguments of this call may not be seen", code=ErrorCode.PERMISSION)
    if not _is_whole(args):
        raise Problem(409, "the record has this call's arguments redacted or cut; call the tool with all of them")
    tool = find_tool(request, str(last.body.get("tool")))
    return await run_call(request, new_call(request, tool.spec.name, args, session=body.session))


@calls.post(
    "/calls/{call_id}/undo", AccessScope.CALL, returns=ToolResultBody, streams=True, statuses={202: CallAccepted}
)
async def undo_call(request: ApiRequest, call_id: str, body: UndoBody) -> Response:
    """Revert the file changes of a call. This is itself a recorded call, which the scope `approve` approves."""
    last = (await find_records(request, call_id))[-1]
    decides = AccessScope.APPROVE in request.credential.scopes
    scope = RecordScope.ALL if decides else RecordScope.USER
    tool = find_tool(request, "undo").spec.name
    call = new_call(request, tool, {"call_id": last.call_id, "force": body.force}, record_scope=scope)
    if decides:
        call.peer = DecidingPeer(call.session, request.credential)
    return await run_call(request, call)


async def find_records(request: ApiRequest, call_id: str) -> Sequence[AuditRecord]:
    """The records of a call, in order. Raises Problem(404)."""
    found = await request.services.reeve.audit.show(call_id)
    calls_only = [each for each in found if each.kind in (CALL, LOST, INTENT)]
    if not calls_only or not request.view.includes(calls_only[-1].body):
        raise not_found(f"no call {call_id!r:.100} is on record")
    return calls_only


def is_own(request: ApiRequest, call: ToolCall) -> bool:
    """Whether the call was made with this credential."""
    return call.session.startswith(own_sessions(request.credential))


def stages_of(row: CallRow, times: Any = None) -> list[CallStage]:
    """The road as far as the call came, by its record; `times` are those of the stages before it ran, in order."""
    known = [each for each in times if isinstance(each, int | float)] if isinstance(times, list) else []
    took = dict(zip(("resolve", "validate", "decide", "admit"), known, strict=False))
    decision = row["decision"]
    asked = decision is not None and decision["effect"] == "ask"
    ran = row["attempts"] > 0 or row["cached"]
    return [
        _stage("resolve", ms=took.get("resolve"), done=row["code"] != ErrorCode.TOOL_NOT_FOUND, note=row["tool"]),
        _stage(
            "validate", ms=took.get("validate"), done=row["code"] != ErrorCode.INVALID_PARAMS or decision is not None
        ),
        _stage(
            "decide",
            ms=took.get("decide"),
            done=decision is not None,
            note="" if decision is None else decision["reason"],
        ),
        _stage("approve", done=ran, ms=row["wait_ms"], note=row["approved_by"] or "", skipped=not asked),
        _stage("admit", ms=took.get("admit"), done=ran, skipped=not ran),
        _stage("execute", done=row["outcome"] == "done", ms=row["duration_ms"], note=row["code"], skipped=not ran),
        _stage("recover", done=ran, skipped=row["outcome"] != "failed"),
        _stage("record", done=True, note=f"record {row['seq']}"),
    ]


def _stage(name: str, *, done: bool, ms: float | None = None, note: str = "", skipped: bool = False) -> CallStage:
    state: Literal["done", "failed", "skipped"] = "done" if done else "failed"
    return {"name": name, "state": "skipped" if skipped else state, "ms": None if skipped else ms, "note": note}


def _is_whole(args: Mapping[str, Any]) -> bool:
    """Whether the record has the arguments as they were: no secret redacted, nothing cut."""
    text = json.dumps(args).decode()
    return not any(mark in text for mark in (MARK, '{"cut":', "[nested too deeply]", '"[more]"', " more]"))


def _filter(query: CallQuery) -> Filter:
    given = {"tool": query.tool, "session": query.session, "since": query.since, "until": query.until}
    kind = LOST if query.outcome == "lost" else CALL
    values = {"kind": kind, **{name: value for name, value in given.items() if value is not None}}
    if query.outcome in ("done", "failed", "refused"):
        values["success"] = "true" if query.outcome == "done" else "false"
    return Filter.parse(values)


async def _scan(
    request: ApiRequest, wanted: Filter, query: CallQuery, before: int | None
) -> tuple[list[AuditRecord], int | None]:
    """The next matching records, and where to continue; None at the end. Looks through a bounded number of them."""
    found: list[AuditRecord] = []
    scanned = 0
    while len(found) < query.limit and scanned < SCANNED:
        chunk = await request.services.reeve.audit.list(wanted, limit=query.limit, before=before)
        for record in chunk:
            before = record.seq
            scanned += 1
            if _matches(request, record, query):
                found.append(record)
                if len(found) == query.limit:
                    break
        if len(chunk) < query.limit:
            return found, None if len(found) < query.limit else before
    return found, before


def _matches(request: ApiRequest, record: AuditRecord, query: CallQuery) -> bool:
    body = record.body
    decision = body.get("decision")
    effect = decision.get("effect") if isinstance(decision, Mapping) else None
    if query.outcome is not None and outcome_of(record) != query.outcome:
        return False
    if query.decision is not None and effect != query.decision:
        return False
    if query.danger is not None and body.get("danger") != query.danger:
        return False
    if query.client is not None and not str(body.get("client") or body.get("origin")).startswith(query.client):
        return False
    if query.q is None:
        return True
    shown = main_argument(body.get("args")) if request.view.reveals(body) else ""
    return query.q.lower() in f"{body.get('tool')} {body.get('code')} {record.call_id} {shown}".lower()


def _shown(record: AuditRecord, *, visible: bool) -> dict[str, Any]:
    values = record.to_dict()
    return values if visible else hide_arguments(values)


def hide_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what a call was about."""
    hidden = ("args", "edited", "effects", "message", "trial", "traceback", "quarantined", "decision", "question")
    return {**{key: value for key, value in values.items() if key not in hidden}, "hidden": True}


def _copies(request: ApiRequest, tool: str, args: Mapping[str, Any]) -> CallCopies:
    body = json.dumps({"args": args}).decode()
    url = f"{request.http.base_url}api/v1/tools/{tool}/call"
    return {
        "cli": f"toolreeve call {shlex.quote(tool)} --json {shlex.quote(json.dumps(args).decode())}",
        "curl": f"curl -sS {url} -H 'content-type: application/json' -d {shlex.quote(body)}",
        "python": f"await reeve.call({tool!r}, {dict(args)!r})",
    }
