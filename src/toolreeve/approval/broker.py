"""Who says yes? The remembered grants first, then whoever called, and every channel at once; the first answer counts.

Nothing but an explicit, strictly boolean yes that fits the request is an approval: not silence, not an error, not a
truthy value. Silence is never called a refusal. A client that cannot be asked while its call waits must come back: with
the answer, where it can show the question itself, or once somebody has answered what waits on the docket.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.approval.always_rule import Lasting, lasting_rule, rule_text
from toolreeve.approval.answers import brought_answer, first_answer, noted_answer, ways
from toolreeve.approval.channel import Channel
from toolreeve.approval.channels.peer import PeerChannel
from toolreeve.approval.elicitation import can_elicit
from toolreeve.approval.grants import Grants
from toolreeve.approval.pending import PendingApproval, PendingApprovals, holder_of, write_question
from toolreeve.approval.request import Answer, Approval, Request, Scope, digest, grounds_of, pose
from toolreeve.core.action import Action
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.events import Event
from toolreeve.core.peer import Decided, Era, Peer
from toolreeve.core.verdict import Decision, Verdict

logger = logging.getLogger(__name__)

Emit = Callable[[Event], None]
Remember = Callable[[Lasting], Awaitable[str]]
Preview = Callable[[Action], Awaitable[str]]


def _unheard(_: Event) -> None:
    """Nobody listens."""


class Broker:
    """`remember` writes the rule of an "always" and says where; without it "always" is not offered.
    `preview` shows what a call would change. `docket` keeps what a client asks while nobody is there."""

    def __init__(
        self,
        channels: Sequence[Channel] = (),
        *,
        now: Callable[[], float],
        timeout: float = 60.0,
        emit: Emit = _unheard,
        remember: Remember | None = None,
        preview: Preview | None = None,
        docket: PendingApprovals | None = None,
    ) -> None:
        if timeout <= 0:
            raise ToolreeveError(f"the approval timeout must be positive, not {timeout!r}")
        self.channels = tuple(channels)
        self.grants = Grants()
        self._now, self._timeout, self._emit = now, timeout, emit
        self._remember, self._preview, self._docket = remember, preview, docket

    async def settle(self, action: Action, verdict: Verdict, *, version: str = "") -> Approval:
        """Raises ToolError: APPROVAL_DENIED, APPROVAL_TIMEOUT, PERMISSION where nobody can be asked, or
        APPROVAL_PENDING where the caller must come back."""
        if verdict.decision is not Decision.ASK:
            raise ToolreeveError(f"only what asks can be approved, not {verdict.decision.word}")
        if (granted_by := self.grants.find(action, version=version)) is not None:
            return Approval(by=granted_by, scope=Scope.SESSION, binding=digest(action, version=version))
        channels = [channel for channel in self.channels if channel.available()]
        peer = action.call.peer
        if peer is None and not channels:
            raise _nobody(action)
        request = await self._pose(action, verdict, version)
        if peer is None:
            return await self._ask(action, request, channels, version)
        return await self._ask_with(peer, action, request, channels, version)

    async def _ask_with(
        self, peer: Peer, action: Action, request: Request, channels: list[Channel], version: str
    ) -> Approval:
        """Where a client called: what it brought along, then the client itself, else the channels, else the docket."""
        decision = peer.decision
        if decision is not None and decision.binding == request.binding:
            return await self._continue(decision, action, request, version)
        if can_elicit(peer.capabilities):
            if peer.era is Era.MODERN:
                raise self._deferred(peer, request)
            channels = [PeerChannel(peer), *channels]
        if channels:
            return await self._ask(action, request, channels, version)
        return await self._look_up(action, request, version, holder=holder_of(request.principal, peer.credential))

    async def _pose(self, action: Action, verdict: Verdict, version: str) -> Request:
        preview = "" if self._preview is None else await self._preview(action)
        lasting = "" if self._remember is None else rule_text(lasting_rule(action))
        return pose(action, verdict, version=version, timeout=self._timeout, preview=preview, lasting=lasting)

    async def _ask(self, action: Action, request: Request, channels: Sequence[Channel], version: str) -> Approval:
        asked = self._now()
        self._tell_asked(request, request.id, [channel.name for channel in channels])
        answering = first_answer(request, channels, self._timeout)
        return await self._conclude(action, request, answering, version, question=request.id, asked=asked)

    def _deferred(self, peer: Peer, request: Request) -> ToolError:
        peer.defer(request)
        self._tell_asked(request, request.id, [PeerChannel.name])
        return ToolError(
            ErrorCode.APPROVAL_PENDING, f"{request.heading} requires approval{request.aside}: the client is asked"
        )

    async def _continue(self, decision: Decided, action: Action, request: Request, version: str) -> Approval:
        """With what the client brought. A call that was approved before it paused just goes on."""
        match decision.answer:
            case {"approved_by": str(by)}:
                return Approval(by=by, scope=Scope.ONCE, digest=request.digest, binding=request.binding)
            case {"matter": matter}:
                return await self._decide_by(matter, action, request, version)
            case {"elicitation": result, "question": str(question), "asked": float(asked)}:
                answering = brought_answer(request, result)
                return await self._conclude(action, request, answering, version, question=question, asked=asked)
            case _:
                raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: what the client brought is no answer")

    async def _look_up(self, action: Action, request: Request, version: str, *, holder: str) -> Approval:
        """Whether somebody has answered on the docket; if not, the question is left there."""
        if self._docket is None:
            raise _nobody(action)
        asking = {"binding": request.binding, "holder": holder}
        if (decided := await self._docket.take(**asking)) is not None:
            return await self._decide_by(decided, action, request, version)
        question = write_question(request, action)
        matter, new = await self._docket.file(**asking, tool=request.tool, question=question)
        if new:
            self._tell_asked(request, matter.id, ["docket"])
            logger.warning(
                "a call of %r waits for a person: see `toolreeve approvals show %s`", request.tool, matter.id
            )
        raise _pending(request, matter)

    async def _decide_by(self, matter: PendingApproval, action: Action, request: Request, version: str) -> Approval:
        answering = noted_answer(request, matter)
        return await self._conclude(action, request, answering, version, question=matter.id, asked=matter.asked)

    async def _conclude(
        self,
        action: Action,
        request: Request,
        answering: Awaitable[Answer],
        version: str,
        *,
        question: str,
        asked: float,
    ) -> Approval:
        outcome: Mapping[str, Any] = {"outcome": "withdrawn"}
        try:
            approval = await self._accept(action, request, await answering, version)
            outcome = _granted(approval)
            return approval
        except ToolError as refusal:
            outcome = {"outcome": _OUTCOMES[refusal.code], "note": refusal.message}
            raise
        finally:
            told = {"tool_id": request.tool, "request": question, **outcome, "waited": self._now() - asked}
            self._tell("approval_resolved", request, told)

    def _tell_asked(self, request: Request, question: str, channels: Sequence[str]) -> None:
        told = {
            "tool_id": request.tool,
            "request": question,
            "danger": request.danger.value,
            "reason": request.verdict.reason,
            "rule": request.verdict.rule,
            "channels": list(channels),
            "timeout": self._timeout,
        }
        self._tell("approval_requested", request, told)

    async def _accept(self, action: Action, request: Request, answer: Answer, version: str) -> Approval:
        if answer.granted is not True:
            raise ToolError(ErrorCode.APPROVAL_DENIED, _refused(request, answer))
        if digest(await action.again(), version=version, request=request.id) != request.digest:
            raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: the call changed while it was being approved")
        once = Approval(by=answer.by, scope=Scope.ONCE, note=answer.note, args=answer.args, digest=request.digest)
        if answer.args is not None:
            return once  # what lasts is about the call that was asked, and that is not the one that will run
        once = replace(once, binding=request.binding)
        match answer.scope:
            case Scope.ONCE:
                return once
            case Scope.SESSION:
                self.grants.add(action, version=version, by=answer.by)
                return replace(once, scope=Scope.SESSION)
            case Scope.ALWAYS:
                return await self._write(lasting_rule(action), once)

    async def _write(self, rule: Lasting, once: Approval) -> Approval:
        """A rule that cannot be written leaves a yes for this one call, and says so."""
        if self._remember is None:
            return replace(once, problem="nothing can be remembered for always here")
        try:
            return replace(once, scope=Scope.ALWAYS, remembered=await self._remember(rule))
        except (OSError, ToolreeveError) as problem:
            return replace(once, problem=f"the rule could not be written: {problem}")

    def _tell(self, kind: str, request: Request, data: Mapping[str, Any]) -> None:
        self._emit(Event(event=kind, task_id=request.call_id, component="approval", data=data, at=self._now()))


def _granted(approval: Approval) -> Mapping[str, Any]:
    return {
        "outcome": "granted",
        "by": approval.by,
        "scope": str(approval.scope),
        "note": approval.note,
        "edited": approval.args is not None,
        "remembered": approval.remembered,
        "problem": approval.problem,
    }


_OUTCOMES = {
    ErrorCode.APPROVAL_DENIED: "denied",
    ErrorCode.APPROVAL_TIMEOUT: "timeout",
    ErrorCode.PERMISSION: "unanswered",
}


def _nobody(action: Action) -> ToolError:
    why = grounds_of(action)
    told = f"Tool {action.spec.name!r} (danger={action.danger.value}) requires approval but nobody can be asked"
    return ToolError(
        ErrorCode.PERMISSION,
        f"{told}: {why}" if why else told,
        suggestions=ways(action.call.origin, beforehand=action.tool.grounds is None),
    )


def _refused(request: Request, answer: Answer) -> str:
    by = f" by {answer.by}" if answer.by else ""
    return f"{request.heading} was refused{by}" + (f": {answer.note}" if answer.note else "") + request.aside


def _pending(request: Request, matter: PendingApproval) -> ToolError:
    told = {"status": "pending", "approval_id": matter.id, "expires": matter.expires}
    return ToolError(
        ErrorCode.APPROVAL_PENDING,
        f"{request.heading} requires approval, and nobody can be asked at this moment{request.aside}. Nothing has run."
        f" The question waits as {matter.id!r}: a person must decide it, on their own terminal",
        suggestions=(
            f"tell the person that the approval {matter.id!r} waits for them",
            f"once they have decided, call wait_for_approval with approval_id {matter.id!r}, or repeat the call",
        ),
        detail=told,
        data=told,
    )
