"""Entry: one call on the road, filled in stage by stage."""

from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.result import Failure, Meta, Success


class Entry:
    """`at` is wall-clock time; `started` by the pipeline's clock, `executed` and `waited` (for a person) in seconds.
    `crash` is the traceback of an exception of the tool, for the record only. `intended` means that an intent is
    durable and an outcome must follow. `preview` is what a trial of the call changed, for the question about it."""

    __slots__ = (
        "action",
        "at",
        "call",
        "crash",
        "executed",
        "intended",
        "meta",
        "outcome",
        "preview",
        "started",
        "waited",
    )

    def __init__(self, call: ToolCall, *, at: float, started: float) -> None:
        self.call = call
        self.at = at
        self.started = started
        self.executed = 0.0
        self.waited = 0.0
        self.crash = ""
        self.action: Action | None = None
        self.intended = False
        self.preview = ""
        self.outcome: Success | Failure | None = None
        self.meta = Meta(call_id=call.id, tool=call.tool, session=call.session)
