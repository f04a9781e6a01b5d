"""Entry: one call on the road, filled in stage by stage."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.result import Failure, Meta, Success
from toolreeve.core.verdict import Verdict


class ConfinedRun(NamedTuple):
    """What a run that was not enough returned, and why it was not."""

    data: Mapping[str, Any] | None
    why: str


class Entry:
    """`at` is wall-clock time; `started` by the pipeline's clock, `executed` and `waited` (for a person) in seconds.
    `crash` is the traceback of an exception of the tool, for the record only. `intended` means that an intent is
    durable and an outcome must follow. `only` are the paths of the changes that a person allowed to keep; None for
    all. `preview` is what a trial of the call changed, for the question about it.
    `tried` is the confined run before the call was asked about. `shadow` is what rules that are not enforced would have
    decided, if something else. `marks` are the ends of the stages so far: resolve, validate, decide, admit; without the
    wait for a person."""

    __slots__ = (
        "action",
        "at",
        "call",
        "crash",
        "executed",
        "intended",
        "marks",
        "meta",
        "only",
        "outcome",
        "preview",
        "shadow",
        "started",
        "tried",
        "waited",
    )

    def __init__(self, call: ToolCall, *, at: float, started: float) -> None:
        self.call = call
        self.at = at
        self.started = started
        self.marks = [started]
        self.executed = 0.0
        self.waited = 0.0
        self.crash = ""
        self.action: Action | None = None
        self.intended = False
        self.only: tuple[str, ...] | None = None
        self.preview = ""
        self.tried: ConfinedRun | None = None
        self.shadow: Verdict | None = None
        self.outcome: Success | Failure | None = None
        self.meta = Meta(call_id=call.id, tool=call.tool, session=call.session)
