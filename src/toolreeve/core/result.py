"""Results of calls: one type; other formats are views of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

from toolreeve.core.effects import Effect
from toolreeve.core.errors import TRAITS, ErrorCode, ToolError
from toolreeve.core.result_text import (
    IN_STRUCTURE,
    SHORT,
    STREAMS,
    CutText,
    Order,
    TextLimit,
    abridge,
    cut,
    diagnostic_lines,
    fit,
    printed,
    readable,
    shorten,
)
from toolreeve.core.trial import NOTHING_CHANGED, Confinement
from toolreeve.core.verdict import Decision, Verdict

_UNCONFINED = frozenset(("none", "limits"))
UNDECIDED = Verdict(Decision.DENY, layer="none", reason="no decision was reached")


@dataclass(slots=True, kw_only=True)
class Output:
    """A tool's output.

    `main` is the value a person means by "the output"; without it, `data` itself is. A truncated output has in
    `data["next"]` the literal call that continues it. `raw` is an upstream tool's result in MCP's own format, which
    MCP clients receive unchanged. `order` says in which order a program printed on its streams. `images` are MCP
    image blocks. `diagnostics` describe anomalies. `effects` are the paths as they were opened, if they are known."""

    data: Mapping[str, Any]
    main: Any = None
    truncated: bool = False
    labels: Sequence[str] = ()
    command: str | None = None
    sandbox: str = "none"
    cost: float | None = None
    order: Order = ()
    images: Sequence[Mapping[str, str]] = ()
    raw: Mapping[str, Any] | None = None
    diagnostics: Mapping[str, Any] | None = None
    effects: Sequence[Effect] | None = None


@dataclass(frozen=True, slots=True)
class Success:
    data: Mapping[str, Any]
    main: Any = None


@dataclass(frozen=True, slots=True)
class Failure:
    """`data` is the output before the failure, such as that of a command that exited non-zero."""

    code: ErrorCode
    message: str
    suggestions: tuple[str, ...] = ()
    detail: Any = None
    retryable: bool = False
    data: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "code": str(self.code),
            "message": self.message,
            "recoverable": TRAITS[self.code].recoverable,
            "retryable": self.retryable,
            "suggestions": list(self.suggestions),
            "detail": self.detail,
        }


@dataclass(slots=True, kw_only=True, repr=False)
class Meta:
    """Metadata of a call, filled in along the road.

    `duration_ms` is the execution, or the whole call if nothing was executed; `waited_ms` the wait for a person before.
    `order` and `text_limit` are for the text that a model reads. `binding` identifies the call that a person
    approved, for a door that must let it continue after a pause. `runs` is the confinement that its programs ran in.
    `quarantined` names files they left that the host would obey, and where they were moved. `trial` tells what a trial
    of the call changed and what became of it.
    """

    call_id: str
    tool: str
    session: str
    duration_ms: float = 0.0
    waited_ms: float = 0.0
    sandbox: str = "none"
    runs: Confinement = Confinement.WORK
    verdict: Verdict = UNDECIDED
    approved_by: str | None = None
    binding: str = ""
    attempts: int = 0
    cached: bool = False
    truncated: bool = False
    labels: Sequence[str] = ()
    command: str | None = None
    auto_recovery: bool = False
    diagnostics: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] | None = None
    order: Order = ()
    images: Sequence[Mapping[str, str]] = ()
    text_limit: TextLimit | None = None
    unconfined: bool = False
    quarantined: list[str] = field(default_factory=list)
    trial: Mapping[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Meta of {self.tool!r:.100}, call {self.call_id}: {self.duration_ms} ms>"

    @property
    def notices(self) -> list[str]:
        """What the caller must know besides the output."""
        unconfined = ["this ran without a sandbox: sandbox.mode is none"] if self.unconfined else []
        found = (*unconfined, self.discarded, self._ignored, self._lasting, self._chosen, *self.quarantined)
        return [notice for notice in found if notice]

    @property
    def _ignored(self) -> str:
        """What a trial made and discarded because git ignores it. Caches of common tools go without a word."""
        if self.trial is None or self.runs is not Confinement.TRY or not self.trial.get("ignored"):
            return ""
        return f"discarded, because git ignores it: {_some(self.trial['ignored'])}"

    @property
    def _lasting(self) -> str:
        """Why what the call changed cannot be undone, although that was tried."""
        if self.trial is None or self.trial["outcome"] != "impossible" or self.runs is not Confinement.WORK:
            return ""
        return f"this cannot be undone: {self.trial['why']}"

    @property
    def _chosen(self) -> str:
        """What a person chose to keep of the changes, if not all."""
        if self.trial is None or "discarded" not in self.trial:
            return ""
        return f"kept: {_some(self.trial['kept'])}; discarded by choice: {_some(self.trial['discarded'])}"

    @property
    def discarded(self) -> str:
        """Why the changes of the call's trial were discarded; empty if they were not."""
        if self.trial is None or self.trial["outcome"] != "dropped" or self.runs is not Confinement.TRY:
            return ""
        return f"nothing was changed: {self.trial['why']}"

    @property
    def ran_in(self) -> Confinement:
        """The confinement that was really enforced."""
        return Confinement.WORK if self.sandbox in _UNCONFINED else self.runs

    def to_dict(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "call_id": self.call_id,
            "tool": self.tool,
            "session": self.session,
            "duration_ms": self.duration_ms,
            "sandbox": self.sandbox,
            "decision": None if self.verdict is UNDECIDED else self.verdict.to_dict(),
            "attempts": self.attempts,
            "cached": self.cached,
            "truncated": self.truncated,
            "labels": list(self.labels),
        }
        if self.command is not None:
            shown["command"] = self.command
            shown["runs"] = self.ran_in.value
        if self.approved_by is not None:
            shown["approved_by"] = self.approved_by
        if self.waited_ms >= 1:
            shown["waited_ms"] = self.waited_ms
        if self.auto_recovery:
            shown["auto_recovery"] = True
        if self.trial is not None:
            shown["trial"] = dict(self.trial)
        if self.quarantined:
            shown["quarantined"] = list(self.quarantined)
        if self.diagnostics:
            shown["toolreeve_diagnostics"] = dict(self.diagnostics)
        return shown


@dataclass(slots=True, repr=False)
class _Result:
    """What both kinds of results share."""

    outcome: Success | Failure
    meta: Meta

    @property
    def output(self) -> Any:
        """The tool's main value: the text of a file, the names in a directory, the body of a response."""
        match self.outcome:
            case Success(data, None):
                return data.get("output", data)
            case Success(_, main):
                return main
            case Failure(data=data):
                return (data or {}).get("stdout", "")

    def to_dict(self) -> dict[str, Any]:
        match self.outcome:
            case Success(data, _):
                return {"success": True, "data": dict(data), "error": None, "meta": self.meta.to_dict()}
            case Failure(data=data) as failure:
                kept = None if data is None else dict(data)
                return {"success": False, "data": kept, "error": failure.to_dict(), "meta": self.meta.to_dict()}

    def to_flat(self) -> dict[str, Any]:
        """Nine fields that are always present, and the tool's own data beside them.

        `success` is the tool's own if it reports one, as the HTTP tools do for the status of the response.
        """
        data = dict(self.outcome.data or {})
        error = self.outcome if isinstance(self.outcome, Failure) else None
        content = data.get("content")
        return data | {
            "success": error is None and data.get("success") is not False,
            "output": self.output,
            "stdout": data.get("stdout", ""),
            "stderr": data.get("stderr", ""),
            "exit_code": data.get("exit_code", data.get("returncode", 0 if error is None else 1)),
            "content": content if isinstance(content, str) else self.to_text(whole=True),
            "error": "" if error is None else error.message,
            "isError": error is not None,
            "structured_content": self._structured(),
        }

    def _structured(self) -> dict[str, Any]:
        """The data; of an upstream tool only what its server sent as structured content."""
        if self.meta.raw is None:
            return dict(self.outcome.data or {})
        structured = self.meta.raw.get("structuredContent")
        return dict(structured) if isinstance(structured, Mapping) else {}

    def to_text(self, *, whole: bool = False) -> str:
        """The string a model reads. Unless `whole`, it is cut to the configured limit and says how to read on."""
        return self._text() if whole else self._cut_text(self._text()).text

    def _cut_text(self, text: str) -> CutText:
        limit = self.meta.text_limit
        return CutText(text) if limit is None else cut(text, limit, self.meta.labels)

    def _text(self) -> str:
        match self.outcome:
            case Failure(code, message, suggestions):
                lines = [f"Error [{code}]: {message}"]
                if suggestions:
                    lines += ["Suggestions:", *(f"  - {suggestion}" for suggestion in suggestions)]
                if isinstance(self.outcome.detail, str):
                    lines += diagnostic_lines(self.meta.diagnostics or {})
                said = printed(self.outcome.data or {}, self.meta.order)
                known = self.meta.discarded if message.endswith(NOTHING_CHANGED) else ""
                return "\n".join([*lines, *([said] if said else ()), *self._notices(without=known)])
            case Success(data, _):
                text = printed(data, self.meta.order) if self.has_stderr() else readable(self.output)
                if self.meta.truncated and "next" in data:
                    text += f"\n[truncated; to continue: {data['next']}]"
                if self.meta.notices:
                    text = "\n".join([text.removesuffix("\n"), *self._notices()])
                return text

    def has_stderr(self) -> bool:
        """Whether the output is what a program printed, and not only on stdout."""
        data = self.outcome.data or {}
        return bool(str(data.get("stderr") or "").strip()) and self.output == data.get("stdout")

    def _notices(self, *, without: str = "") -> list[str]:
        return [f"[{notice}]" for notice in self.meta.notices if notice != without]

    def to_mcp(self, *, structured_first: bool = False) -> dict[str, Any]:
        """A CallToolResult. That of an upstream tool is passed through unchanged.

        A long text is sent once: in the text content, and if the client shows its model the structured content first,
        in that. The other part has its beginning and end.
        """
        if self.meta.raw is not None:
            return dict(self.meta.raw)
        error = self.outcome if isinstance(self.outcome, Failure) else None
        structured = dict(self.outcome.data or {})
        whole = self._text()
        shown = self._cut_text(whole)
        text = shown.text
        if len(whole) > SHORT:
            if structured_first and self._holds_text(structured):
                text = shorten(whole, IN_STRUCTURE)
            else:
                structured = abridge(structured, self._shown_fields(structured))
        if self.meta.text_limit is not None:
            structured = fit(structured, self.meta.text_limit, shown.next)
        if shown.next:
            structured = {**structured, "truncated": True, "next": structured.get("next", shown.next)}
        if error is not None:
            structured["error"] = error.to_dict()
        result: dict[str, Any] = {
            "content": [{"type": "text", "text": text}, *map(dict, self.meta.images)],
            "structuredContent": structured,
            "isError": error is not None,
        }
        if shown.next or self.meta.truncated:
            result["_meta"] = {"toolreeve_truncated": True}
        return result

    def _shown_fields(self, data: Mapping[str, Any]) -> list[str]:
        """The fields whose value is in the text as well."""
        if isinstance(self.outcome, Failure):
            return [*STREAMS]
        if self.outcome.main is None:
            return [*data]
        return [name for name, value in data.items() if name in STREAMS or value == self.outcome.main]

    def _holds_text(self, data: Mapping[str, Any]) -> bool:
        """Whether the data has all that the text has."""
        shown = self._shown_fields(data)
        return bool(shown) and any(len(str(data.get(name, ""))) > SHORT // 2 for name in shown)


class Succeeded(_Result):
    """The result of a call that worked."""

    __slots__ = ()
    outcome: Success
    success: ClassVar[Literal[True]] = True
    """Whether the call worked."""

    def __repr__(self) -> str:
        return f"<{self.meta.tool} succeeded: {_excerpt(readable(self.output))}>"

    @property
    def data(self) -> Mapping[str, Any]:
        """All data of the tool."""
        return self.outcome.data

    @property
    def error(self) -> None:
        """None: the call worked."""
        return None

    def unwrap(self) -> Any:
        """The tool's main value."""
        return self.output


class Failed(_Result):
    """The result of a call that was refused or did not work."""

    __slots__ = ()
    outcome: Failure
    success: ClassVar[Literal[False]] = False
    """Whether the call worked."""

    def __repr__(self) -> str:
        return f"<{self.meta.tool} failed: {self.error.code}: {_excerpt(self.error.message)}>"

    @property
    def data(self) -> Mapping[str, Any]:
        """The data up to the failure, such as what a program printed; empty if there is none."""
        return self.outcome.data or {}

    @property
    def error(self) -> Failure:
        """Why the call failed: code, message, suggestions, detail, retryable."""
        return self.outcome

    def unwrap(self) -> NoReturn:
        """Raises the error as ToolError."""
        error = self.outcome
        raise ToolError(error.code, error.message, suggestions=error.suggestions, detail=error.detail)


ToolResult: TypeAlias = Succeeded | Failed
"""The result of a call. `result.success` and `result.error` tell the two kinds apart, also for type checkers."""


def new_result(outcome: Success | Failure, meta: Meta) -> ToolResult:
    return Succeeded(outcome, meta) if isinstance(outcome, Success) else Failed(outcome, meta)


def _excerpt(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _some(paths: Sequence[str], most: int = 5) -> str:
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(paths[:most]) + more
