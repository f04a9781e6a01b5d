"""Event publisher: calls, servers and record, for metrics and bus.

Metrics count every call; events are created only while the bus has subscribers. Secrets are redacted first.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ErrorCode
from toolreeve.core.events import Event
from toolreeve.core.result import Failure, Meta, Success
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.record.audit import AuditRecord
from toolreeve.record.bus import Bus
from toolreeve.record.gaps import Finding
from toolreeve.record.metrics import Metrics
from toolreeve.record.recent_results import RecentResults
from toolreeve.record.traces import CallTracer

COMPONENT = "toolreeve"


class EventPublisher:
    def __init__(self, bus: Bus, metrics: Metrics, redactor: Redactor, now: Callable[[], float]) -> None:
        self._bus = bus
        self._metrics = metrics
        self._redactor = redactor
        self._now = now
        self._runs: Counter[str] = Counter()
        self._run_seconds: defaultdict[str, float] = defaultdict(float)
        self._stopped = 0
        self._quarantined = 0
        watch = metrics.watch
        each = metrics.watch_each
        each("toolreeve_sandbox_runs_total", "Calls that ran programs.", "confinement", lambda: self._runs)
        each("toolreeve_sandbox_seconds_total", "Time of these calls.", "confinement", lambda: self._run_seconds)
        watch("toolreeve_sandbox_limited_total", "Of these, stopped by a limit.", lambda: self._stopped)
        watch("toolreeve_sandbox_quarantined_total", "Files of programs put aside.", lambda: self._quarantined)
        self.results: RecentResults | None = None
        self.tracer: CallTracer | None = None

    def keep_results(self) -> RecentResults:
        """Keep the results of calls from now on."""
        if self.results is None:
            self.results = RecentResults(self._redactor)
        return self.results

    def arrived(self) -> None:
        """A call is on the road; `ended` follows."""
        self._metrics.started()

    def started(self, entry: Entry) -> None:
        if self._bus.listened:
            parameters = self._redactor.value(entry.call.args)
            data = {"tool_id": entry.meta.tool, "status": "started", "parameters": parameters, **_caller(entry.call)}
            self._emit("tool_execution", entry.call, data)

    def progress(self, call: ToolCall, tool: str, text: str) -> None:
        if self._bus.listened:
            self._emit("tool_progress", call, {"tool_id": tool, "text": self._redactor.text(text), **_caller(call)})

    def ended(self, entry: Entry) -> None:
        meta = entry.meta
        outcome = entry.outcome
        code = str(outcome.code) if isinstance(outcome, Failure) else ""
        if self.results is not None and outcome is not None:
            self.results.add(entry, outcome)
        if self.tracer is not None:
            self.tracer.record(entry)
        self._metrics.executed(meta.tool if entry.action else "", code, meta.duration_ms / 1000)
        if meta.command is not None:
            self._count_run(meta, code)
        if entry.action is not None and entry.action.spec.limits.caching and (meta.cached or meta.attempts):
            self._metrics.cached(meta.tool, "hit" if meta.cached else "miss")
        if not self._bus.listened:
            return
        tool = meta.tool if entry.action else self._redactor.value(meta.tool)  # an unknown name may hold anything
        data: dict[str, Any] = {"tool_id": tool, "execution_time": meta.duration_ms / 1000, "cached": meta.cached}
        match outcome:
            case Success(output, main):
                data |= {"status": "completed", "output_length": length(output, main)}
                data["return_code"] = output.get("exit_code", 0)
            case Failure(message=message):
                error = {"code": code, "message": self._redactor.text(message)}
                data |= {"status": "failed", "error": error, "retry": {"attempts": meta.attempts}}
        self._emit("tool_execution", entry.call, data)

    def _count_run(self, meta: Meta, code: str) -> None:
        confinement = "none" if meta.unconfined else meta.ran_in.value
        self._runs[confinement] += 1
        self._run_seconds[confinement] += meta.duration_ms / 1000
        self._stopped += code == ErrorCode.LIMIT
        self._quarantined += len(meta.quarantined)

    def pass_on(self, event: Event) -> None:
        """Publish an event that another component created."""
        if event.event in ("approval_resolved", "approval_withdrawn"):
            self._metrics.approved(event.data["outcome"], event.data["waited"])
        if self._bus.listened:
            self._bus.emit(replace(event, data=self._redactor.value(event.data)))

    def tools_changed(self, data: dict[str, Any]) -> None:
        """A tool definition file was reloaded, or failed to load."""
        event = Event(event="tool_changed", task_id="", component=COMPONENT, data=data, at=self._now())
        self.pass_on(event)

    def server(self, kind: str, data: Mapping[str, Any]) -> None:
        """A server connected, disconnected, changed a tool, or violated a tool's output schema."""
        self.pass_on(Event(event=kind, task_id="", component=COMPONENT, data=data, at=self._now()))

    def gap(self, finding: Finding) -> None:
        """Records are missing, or the witness cannot be trusted. Called from any thread."""
        event = Event(event="record_gap", task_id="", component=COMPONENT, data=finding.to_body(), at=self._now())
        self.pass_on(event)

    def _emit(self, kind: str, call: ToolCall, data: dict[str, Any]) -> None:
        self._bus.emit(Event(event=kind, task_id=call.id, component=COMPONENT, data=data, at=self._now()))


def _caller(call: ToolCall) -> dict[str, Any]:
    """Whose call it is, as the events from the record have it."""
    context = {"session": call.session, "origin": call.origin, "client": call.client}
    return {"execution_context": context, "user": {"user": call.principal.user, "role": call.principal.role.value}}


def length(data: Any, main: Any) -> int:
    """Size of the output: characters of a text, items of a list, fields of an object."""
    value = data if main is None else main
    return len(value) if isinstance(value, str | list | dict) else 1


def event_of(record: AuditRecord) -> Event | None:
    """The event that a record stands for, whichever process wrote it; None for a record without one."""
    body = record.body
    at = body.get("ts")
    kind = KINDS.get(record.kind)
    if kind is None or not isinstance(at, int | float):
        return None
    data = _EXECUTIONS[record.kind](body) if record.kind in _EXECUTIONS else _plain(body)
    return Event(event=kind, task_id=record.call_id, component=COMPONENT, data=data, at=at)


KINDS: Mapping[str, str] = {
    "intent": "tool_execution",
    "call": "tool_execution",
    "lost": "tool_execution",
    "approval": "approval_resolved",
    "grant": "grant_changed",
    "pins": "tool_changed",
    "policy": "policy_changed",
    "gap": "record_gap",
}


def _started(body: Mapping[str, Any]) -> dict[str, Any]:
    context = {name: body.get(name) for name in ("session", "workspace", "origin", "client")}
    return {
        "tool_id": body.get("tool"),
        "status": "started",
        "parameters": body.get("args"),
        "execution_context": context,
        "user": {"user": body.get("user"), "role": body.get("role")},
    }


def _ended(body: Mapping[str, Any]) -> dict[str, Any]:
    """`execution_time` excludes the wait for a person, which is `waited`."""
    data = {
        "tool_id": body.get("tool"),
        "status": "completed" if body.get("success") is True else "failed",
        "execution_time": _seconds(body, "duration_ms"),
        "waited": _seconds(body, "waited_ms"),
        "cached": body.get("cached"),
        "user": {"user": body.get("user"), "role": body.get("role")},
    }
    if body.get("success") is True:
        return {**data, "output_length": body.get("output_length"), "return_code": 0}
    attempts = body.get("attempts")
    error = {"code": body.get("code"), "message": body.get("message")}
    return {**data, "error": error, "retry_attempt": attempts, "will_retry": False, "retry": {"attempts": attempts}}


def _seconds(body: Mapping[str, Any], name: str) -> float:
    value = body.get(name)
    return value / 1000 if isinstance(value, int | float) else 0.0


def _plain(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in ("v", "ts")}


def _resolved(body: Mapping[str, Any]) -> dict[str, Any]:
    """An answer that did not count is `refused`."""
    outcome = "granted" if body.get("granted") is True else "denied"
    if body.get("granted") is None:
        outcome = "refused"
    return {**_plain(body), "id": body.get("approval"), "outcome": outcome}


_EXECUTIONS = {"intent": _started, "call": _ended, "lost": _ended, "approval": _resolved}
