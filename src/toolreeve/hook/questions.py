"""Durable questions of hooks: answered later, used by the same call.

For a client that cannot ask while its call waits. The answer fits the very call of this client in this workspace, in
any of its sessions, once: an agent that runs again uses what a person answered meanwhile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolreeve.core.errors import ErrorCode
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.hook.events import NEEDS_PERSON
from toolreeve.hook.judge import ClientRequest, JudgedCall

if TYPE_CHECKING:
    from toolreeve.approval.request import Request
    from toolreeve.record.pending import PendingStore


@dataclass(frozen=True, slots=True)
class Settled:
    """`code` says why a call is refused, for the record."""

    decision: str
    reason: str
    approved_by: str = ""
    code: ErrorCode | None = None


class HookQuestions:
    def __init__(self, store: "PendingStore") -> None:
        self._store = store

    async def settle(
        self, asked: ClientRequest, judged: Sequence[JudgedCall], verdict: Verdict, *, version: str, files: bool
    ) -> Settled:
        """The answer that a person gave before, else ask; with `files`, the question is stored for one."""
        action = next(each.action for each in judged if each.verdict.decision is Decision.ASK)
        request = _pose(asked, judged, verdict, version)
        holder = _holder(asked, request)
        found = await self._store.take(binding=request.binding, holder=holder)
        if found is not None and found.answer is not None:
            return _read(found.answer)
        if not files:
            return Settled("ask", verdict.reason)
        from toolreeve.approval.card import summarize
        from toolreeve.approval.pending import write_question

        row, _ = await self._store.file(
            number=request.id,
            binding=request.binding,
            digest=request.digest,
            holder=holder,
            tool=request.tool,
            question=write_question(request, action),
            summary=summarize(request),
        )
        reason = f"{verdict.reason}: {NEEDS_PERSON}; approval {row.id} is pending, repeat the call later"
        return Settled("deny", reason, code=ErrorCode.APPROVAL_PENDING)


def _pose(asked: ClientRequest, judged: Sequence[JudgedCall], verdict: Verdict, version: str) -> "Request":
    """The question shows the client's own arguments, and the effects of all calls of ours that they stand for."""
    from toolreeve.approval.always_rule import new_always_rule
    from toolreeve.approval.request import Choice, definition, fingerprint, pose

    actions = [each.action for each in judged]
    action = next(each.action for each in judged if each.verdict.decision is Decision.ASK)
    request = pose(action, verdict, version=version, timeout=0.0)
    ours = [[definition(each.spec), each.args, [str(effect) for effect in each.effects]] for each in actions]
    return replace(
        request,
        args=dict(asked.args),
        defaults=(),
        effects=tuple(effect for each in actions for effect in each.effects),
        binding=fingerprint("hook", asked.client, action.root, asked.tool, asked.args, asked.cwd, ours, version),
        choices=(Choice("exactly this call", new_always_rule(action)),),
        withheld=f"{asked.client} runs the call by itself: it can be allowed once",
        lasting="",
    )


def _holder(asked: ClientRequest, request: "Request") -> str:
    """Not that of an MCP client of the same user: what a hook asked for is never run by us."""
    from toolreeve.approval.pending import holder_of

    return holder_of(request.principal, f"hook {asked.client}")


def _read(answer: Mapping[str, Any]) -> Settled:
    by = str(answer.get("by") or "")
    note = f": {answer['note']}" if answer.get("note") else ""
    if answer["granted"] is not True:
        return Settled("deny", f"refused by {by}{note}", code=ErrorCode.APPROVAL_DENIED)
    if answer.get("args") is not None:
        wanted = f"{by} wants other arguments; make the call with {answer['args']!r}"[:2000]
        return Settled("deny", wanted, code=ErrorCode.APPROVAL_DENIED)
    return Settled("allow", f"approved by {by}{note}", by)
