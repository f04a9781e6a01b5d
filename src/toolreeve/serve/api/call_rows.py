"""Rows of the list of calls, made from audit records.

The arguments of other users' calls, and whatever was made of them, are left out for those who may not see them.
"""

from collections.abc import Mapping
from typing import Any, Literal

from typing_extensions import TypedDict

from toolreeve.core.errors import TRAITS, ErrorCode, Severity
from toolreeve.core.names import server_of
from toolreeve.record.audit import AuditRecord, timestamp
from toolreeve.record.journal import INTENT, LOST

Outcome = Literal["done", "failed", "refused", "waiting", "lost", "running"]
"""`waiting` ended with a question: the client repeats it once a person has answered."""
LONGEST_MAIN = 300
TELLING = ("command", "pattern", "query", "path", "url", "expression", "name", "to", "call_id")
"""The arguments that say what a call is about, the most telling first."""


class CallDecision(TypedDict):
    effect: str
    layer: str
    rule: str | None
    reason: str


class CallRow(TypedDict):
    """`main` is the telling argument; `hidden` says that arguments are left out for this role. `duration_ms` excludes
    `wait_ms`, the wait for a person. `cost` is in dollars of the budget, `slot` the confinement of its programs."""

    id: str
    seq: int
    at: str | None
    tool: str
    server: str | None
    client: str
    workspace: str
    session: str
    user: str
    role: str
    origin: str
    danger: str | None
    main: str
    hidden: bool
    outcome: Outcome
    code: str
    message: str
    decision: CallDecision | None
    approved_by: str | None
    effects: list[str]
    labels: list[str]
    duration_ms: float
    wait_ms: float
    cost: float
    attempts: int
    cached: bool
    slot: str | None
    undoable: bool
    undone: bool


def new_row(record: AuditRecord, *, visible: bool, undo: Mapping[str, bool] | None = None) -> CallRow:
    """`undo` tells of each call that changed files whether that was undone. Total: a tampered body has odd values."""
    body = record.body
    tool = _text(body, "tool")
    state = (undo or {}).get(record.call_id)
    decision = body.get("decision")
    return {
        "id": record.call_id,
        "seq": record.seq,
        "at": timestamp(body.get("ts")),
        "tool": tool,
        "server": server_of(tool) if tool.startswith("mcp__") else None,
        "client": _text(body, "client"),
        "workspace": _text(body, "workspace"),
        "session": _text(body, "session"),
        "user": _text(body, "user"),
        "role": _text(body, "role"),
        "origin": _text(body, "origin"),
        "danger": _text(body, "danger") or None,
        "main": main_argument(body.get("args")) if visible else "",
        "hidden": not visible,
        "outcome": outcome_of(record),
        "code": _text(body, "code"),
        "message": _text(body, "message") if visible else "",
        "decision": _decision(decision, visible=visible) if isinstance(decision, Mapping) else None,
        "approved_by": _text(body, "approved_by") or None,
        "effects": _texts(body, "effects") if visible else [],
        "labels": _texts(body, "labels"),
        "duration_ms": _number(body, "duration_ms"),
        "wait_ms": _number(body, "waited_ms"),
        "cost": _number(body, "cost"),
        "attempts": int(_number(body, "attempts")),
        "cached": body.get("cached") is True,
        "slot": _text(body, "runs") or None,
        "undoable": state is False,
        "undone": state is True,
    }


def outcome_of(record: AuditRecord) -> Outcome:
    if record.kind == LOST:
        return "lost"
    if record.kind == INTENT:
        return "running"
    if record.body.get("success") is True:
        return "done"
    try:
        code = ErrorCode(_text(record.body, "code"))
    except ValueError:
        return "failed"
    if code is ErrorCode.APPROVAL_PENDING:
        return "waiting"
    return "refused" if TRAITS[code].severity is Severity.FATAL else "failed"


def main_argument(args: Any) -> str:
    """The argument that says what the call is about, cut to a line's length."""
    if not isinstance(args, Mapping):
        return ""
    texts = {key: value for key, value in args.items() if isinstance(value, str)}
    found = next((texts[key] for key in TELLING if key in texts), next(iter(texts.values()), ""))
    line = " ".join(found[: LONGEST_MAIN * 2].split())
    return line if len(line) <= LONGEST_MAIN else f"{line[: LONGEST_MAIN - 1]}…"


def _decision(decision: Mapping[str, Any], *, visible: bool) -> CallDecision:
    return {
        "effect": _text(decision, "effect"),
        "layer": _text(decision, "layer"),
        "rule": _text(decision, "rule") or None,
        "reason": _text(decision, "reason") if visible else "",
    }


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _texts(body: Mapping[str, Any], name: str) -> list[str]:
    value = body.get(name)
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _number(body: Mapping[str, Any], name: str) -> float:
    value = body.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
