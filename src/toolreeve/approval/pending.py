"""Pending approvals: questions stored until a person answers, across calls and processes.

A question is stored whole, so that it is shown later exactly as it was asked. An answer fits this one call, once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from toolreeve.approval.request import Answer, Choice, Request, Scope, fingerprint
from toolreeve.core.action import Action
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.verdict import Decision, Verdict

Record = Mapping[str, Any]
"""Plain JSON data."""


PENDING = "pending"


class PendingApproval(Protocol):
    """A stored question. `answer` is None until it is decided; `shown` is when a person could first see it, `votes` are
    the approvals so far."""

    @property
    def id(self) -> str: ...

    @property
    def asked(self) -> float: ...

    @property
    def expires(self) -> float: ...

    @property
    def state(self) -> str: ...

    @property
    def question(self) -> Record: ...

    @property
    def answer(self) -> Record | None: ...

    @property
    def digest(self) -> str: ...

    @property
    def shown(self) -> float | None: ...

    @property
    def votes(self) -> Sequence[Record]: ...


class PendingApprovals(Protocol):
    """The stored questions, as `record.pending.PendingStore` keeps them."""

    async def file(self, *, binding: str, holder: str, tool: str, question: Record, **more: Any) -> tuple[Any, bool]:
        """Store a question that no call waits for. The row, and whether it is new: the same question is stored once."""
        ...

    async def open(
        self, *, binding: str, holder: str, tool: str, question: Record, timeout: float, **more: Any
    ) -> PendingApproval:
        """Store a question that a call waits for."""
        ...

    async def settled(
        self, *, binding: str, holder: str, tool: str, question: Record, answer: Record, **more: Any
    ) -> PendingApproval:
        """Store a question with its answer, which is used at once."""
        ...

    async def take(self, *, binding: str, holder: str) -> PendingApproval | None:
        """A decided approval, consumed by this call."""
        ...

    async def claim(self, number: str, *, holder: str) -> PendingApproval | None:
        """The approval with its answer, consumed by this call."""
        ...

    async def find(self, number: str) -> PendingApproval | None: ...

    async def vote(self, number: str, answer: Record, *, use: bool = False) -> str:
        """ "decided", "counted" or "repeated"; empty if it was decided before or has expired."""
        ...

    async def refuse(self, row: Any, answer: Record, why: str) -> None:
        """Record an answer that does not count."""
        ...

    async def wait(self, number: str, *, timeout: float) -> PendingApproval | None:
        """The approval once it is no longer pending, or as it is after `timeout`."""
        ...

    async def expire(self, number: str) -> bool: ...

    async def withdraw(self, number: str) -> bool: ...

    async def keep(self, number: str) -> bool:
        """The question stays open after its call has ended."""
        ...


def holder_of(principal: Principal, credential: str) -> str:
    """Identifies the principal and its credential: another token of the same user is another holder."""
    return fingerprint(principal.user, principal.role.value, credential)


def write_question(request: Request, action: Action) -> Record:
    call = action.call
    verdict = request.verdict
    return {
        "call_id": request.call_id,
        "tool": request.tool,
        "danger": request.danger.value,
        "args": dict(request.args),
        "given": None if call.args == request.args else dict(call.args),
        "hidden": action.spec.hidden,
        "effects": [[effect.kind.value, effect.target, effect.reach.value] for effect in request.effects],
        "client": request.client,
        "workspace": request.workspace,
        "tried": request.tried,
        "approvals": request.approvals,
        "withheld": request.withheld,
        "defaults": list(request.defaults),
        "grounds": request.grounds,
        "facts": dict(request.facts),
        "digest": request.digest,
        "session": request.session,
        "session_issued": call.session_issued,
        "user": request.principal.user,
        "role": request.principal.role.value,
        "origin": request.origin,
        "timeout": call.timeout,
        "cost": call.estimated_cost,
        "verdict": [verdict.decision.value, verdict.layer, verdict.reason, verdict.rule],
        "binding": request.binding,
        "preview": request.preview,
        "lasting": request.lasting,
        "choices": [[choice.sentence, dict(choice.rule)] for choice in request.choices],
    }


def read_question(number: str, record: Record) -> Request:
    """The question as it was asked."""
    decision, layer, reason, rule = record["verdict"]
    return Request(
        id=number,
        call_id=record["call_id"],
        tool=record["tool"],
        danger=DangerLevel(record["danger"]),
        args=record["args"],
        effects=tuple(map(_effect, record["effects"])),
        session=record["session"],
        principal=_principal(record),
        origin=record["origin"],
        verdict=Verdict(Decision(decision), layer, reason, rule),
        digest=record.get("digest", number),
        binding=record["binding"],
        preview=record["preview"],
        lasting=record["lasting"],
        choices=tuple(Choice(sentence, rule) for sentence, rule in record.get("choices", ())),
        tried=record.get("tried", False),
        client=record.get("client", ""),
        workspace=record.get("workspace", ""),
        approvals=record.get("approvals", 1),
        withheld=record.get("withheld", ""),
        defaults=tuple(record.get("defaults", ())),
        grounds=record.get("grounds", ""),
        facts=record.get("facts", {}),
    )


def _effect(stored: Sequence[str]) -> Effect:
    kind, target, *reach = stored
    return Effect(EffectKind(kind), target, Reach(reach[0]) if reach else Reach.EXACT)


def read_call(record: Record) -> ToolCall:
    """The call that the question is about, to be run again."""
    return ToolCall(
        tool=record["tool"],
        args=record["args"] if record["given"] is None else record["given"],
        session=record["session"],
        session_issued=record.get("session_issued", False),
        principal=_principal(record),
        origin=record["origin"],
        timeout=record["timeout"],
        estimated_cost=record["cost"],
    )


def write_answer(answer: Answer, request: Request | None = None) -> Record:
    """Of a choice among those of the request the sentence is stored, so that it fits the same offer only."""
    offered = () if request is None else request.choices
    chosen = offered[answer.choice].sentence if 0 < answer.choice < len(offered) else ""
    return {
        "choice": chosen,
        "granted": answer.granted is True,
        "by": answer.by,
        "channel": answer.channel,
        "approver": answer.approver or answer.by,
        "scope": answer.scope.value,
        "note": answer.note,
        "args": None if answer.args is None else dict(answer.args),
        "expires": answer.expires,
        "uses": answer.uses,
        "know": answer.know,
        **({} if answer.only is None else {"only": list(answer.only)}),
    }


def read_answer(request: Request, record: Record) -> Answer:
    """The stored decision as an answer to a live question about the same call."""
    if record["granted"] is not True:
        return replace(request.deny(by=record["by"], note=record["note"]), channel=record.get("channel", ""))
    sentences = [choice.sentence for choice in request.choices]
    chosen = record.get("choice", "")
    choice = sentences.index(chosen) if chosen in sentences else 0
    allowed = request.allow(
        by=record["by"],
        scope=Scope(record["scope"]),
        note=record["note"],
        args=record["args"],
        choice=choice,
        expires=record.get("expires"),
        uses=record.get("uses"),
        only=record.get("only"),
        know=record.get("know", False),
    )
    return replace(allowed, channel=record.get("channel", ""))


def _principal(record: Record) -> Principal:
    return Principal(user=record["user"], role=Role(record["role"]))
