"""Pending approvals: questions stored until a person answers, across calls and processes.

A question is stored whole, so that it is shown later exactly as it was asked. An answer fits this one call, once.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from toolreeve.approval.request import Answer, Choice, Request, Scope, fingerprint
from toolreeve.core.action import Action
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.verdict import Decision, Verdict

Record = Mapping[str, Any]
"""Plain JSON data."""


class PendingApproval(Protocol):
    """A stored question. `answer` is None until a person decides."""

    @property
    def id(self) -> str: ...

    @property
    def asked(self) -> float: ...

    @property
    def expires(self) -> float: ...

    @property
    def answer(self) -> Record | None: ...


class PendingApprovals(Protocol):
    async def file(self, *, binding: str, holder: str, tool: str, question: Record) -> tuple[PendingApproval, bool]:
        """The pending approval, and whether it is new: the same question is stored once."""
        ...

    async def take(self, *, binding: str, holder: str) -> PendingApproval | None:
        """A decided approval, consumed by this call."""
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
        "effects": [[effect.kind.value, effect.target] for effect in request.effects],
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
    """The question as it was asked. Its digest is the stored id, so an answer to it fits no live question."""
    decision, layer, reason, rule = record["verdict"]
    return Request(
        id=number,
        call_id=record["call_id"],
        tool=record["tool"],
        danger=DangerLevel(record["danger"]),
        args=record["args"],
        effects=tuple(Effect(EffectKind(kind), target) for kind, target in record["effects"]),
        session=record["session"],
        principal=_principal(record),
        origin=record["origin"],
        verdict=Verdict(Decision(decision), layer, reason, rule),
        digest=number,
        binding=record["binding"],
        preview=record["preview"],
        lasting=record["lasting"],
        choices=tuple(Choice(sentence, rule) for sentence, rule in record.get("choices", ())),
    )


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
    chosen = request.choices[answer.choice].sentence if request is not None and answer.choice else ""
    return {
        "choice": chosen,
        "granted": answer.granted is True,
        "by": answer.by,
        "scope": answer.scope.value,
        "note": answer.note,
        "args": None if answer.args is None else dict(answer.args),
        "expires": answer.expires,
        "uses": answer.uses,
        **({} if answer.only is None else {"only": list(answer.only)}),
    }


def read_answer(request: Request, record: Record) -> Answer:
    """The stored decision as an answer to a live question about the same call."""
    if record["granted"] is not True:
        return request.deny(by=record["by"], note=record["note"])
    sentences = [choice.sentence for choice in request.choices]
    chosen = record.get("choice", "")
    choice = sentences.index(chosen) if chosen in sentences else 0
    return request.allow(
        by=record["by"],
        scope=Scope(record["scope"]),
        note=record["note"],
        args=record["args"],
        choice=choice,
        expires=record.get("expires"),
        uses=record.get("uses"),
        only=record.get("only"),
    )


def _principal(record: Record) -> Principal:
    return Principal(user=record["user"], role=Role(record["role"]))
