"""The approval broker: session grants first, then the client and all channels at once.

Only an explicit, strictly boolean yes that fits the request is an approval: not silence, not an error, not a truthy
value. Silence is never reported as a refusal. A client that cannot be asked during its call must repeat the call: with
the answer, if it can show the question itself, or after a person has answered the pending approval.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.approval.always_rule import AlwaysRule, new_always_rule, rule_text, until, widen
from toolreeve.approval.answers import client_answer, first_answer, prior_answer, suggest_channels
from toolreeve.approval.channel import Channel
from toolreeve.approval.channels.peer import PeerChannel
from toolreeve.approval.grants import Grants
from toolreeve.approval.pending import PendingApproval, PendingApprovals, holder_of, write_question
from toolreeve.approval.request import Answer, Approval, Choice, Request, Scope, digest, grounds_of, pose
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.events import Event
from toolreeve.core.peer import Peer, PriorAnswer, PriorApproval
from toolreeve.core.verdict import Decision, Verdict

logger = logging.getLogger(__name__)

Emit = Callable[[Event], None]
Remember = Callable[[AlwaysRule], Awaitable[str]]
Preview = Callable[[Action], Awaitable[str]]


FindChoices = Callable[[Action], Sequence[Choice]]


def _no_choices(_: Action) -> Sequence[Choice]:
    """The default `offers`."""
    return ()


def _ignore(_: Event) -> None:
    """The default `emit`."""


class Broker:
    """`remember` writes the rule of an "always" and returns its location; without it "always" is not offered.
    `preview` shows what a call would change. `pending` stores the questions that nobody can answer now. `offers` finds
    what a yes for longer may cover beyond the very call. Without `grants`, a yes for the session holds once."""

    def __init__(
        self,
        channels: Sequence[Channel] = (),
        *,
        now: Callable[[], float],
        timeout: float = 60.0,
        emit: Emit = _ignore,
        remember: Remember | None = None,
        preview: Preview | None = None,
        pending: PendingApprovals | None = None,
        offers: FindChoices = _no_choices,
        grants: Grants | None = None,
    ) -> None:
        if timeout <= 0:
            raise ToolreeveError(f"the approval timeout must be positive, not {timeout!r}")
        self.channels = tuple(channels)
        self._grants = grants
        self._offers = offers
        self._now = now
        self._timeout = timeout
        self._emit = emit
        self._remember = remember
        self._preview = preview
        self._pending = pending

    def can_ask(self, call: ToolCall) -> bool:
        """Whether a question about the call reaches anyone, now or later."""
        return call.peer is not None or any(channel.available() for channel in self.channels)

    def can_ask_now(self, call: ToolCall) -> bool:
        """Whether an answer can come while the call waits for it."""
        asks_client = call.peer is not None and call.peer.can_ask and not call.peer.defers
        return asks_client or any(channel.available() for channel in self.channels)

    async def settle(self, action: Action, verdict: Verdict, *, version: str = "", preview: str = "") -> Approval:
        """`preview` shows what the call changed on trial. Raises ToolError: APPROVAL_DENIED, APPROVAL_TIMEOUT,
        PERMISSION if nobody can be asked, or APPROVAL_PENDING if the caller must repeat the call."""
        if verdict.decision is not Decision.ASK:
            raise ToolreeveError(f"only an ASK verdict can be approved, not {verdict.decision.word}")
        if (granted_by := await self._find_grant(action, verdict, version)) is not None:
            return Approval(by=granted_by, scope=Scope.SESSION, binding=digest(action, version=version))
        channels = [channel for channel in self.channels if channel.available()]
        peer = action.call.peer
        if peer is None and not channels:
            raise _no_channel(action)
        request = await self._pose(action, verdict, version, preview)
        if peer is None:
            return await self._ask(action, request, channels, version)
        return await self._ask_with(peer, action, request, channels, version)

    async def _find_grant(self, action: Action, verdict: Verdict, version: str) -> str | None:
        if self._grants is None:
            return None
        return await self._grants.find(action, version=version, asked_by=verdict.rule)

    async def _ask_with(
        self, peer: Peer, action: Action, request: Request, channels: list[Channel], version: str
    ) -> Approval:
        """For a call by a client: the answer it brought, then the client itself, then the channels, else pending."""
        decision = peer.decision
        if decision is not None and decision.binding == request.binding:
            return await self._continue(decision, action, request, version)
        if peer.can_ask:
            if peer.defers:
                raise await self._defer(peer, request)
            channels = [PeerChannel(peer), *channels]
        if channels:
            return await self._ask(action, request, channels, version)
        return await self._look_up(action, request, version, holder=holder_of(request.principal, peer.credential))

    async def _pose(self, action: Action, verdict: Verdict, version: str, preview: str) -> Request:
        if not preview and self._preview is not None:
            preview = await self._preview(action)
        exactly = new_always_rule(action)
        return pose(
            action,
            verdict,
            version=version,
            timeout=self._timeout,
            preview=preview,
            lasting="" if self._remember is None else rule_text(exactly),
            choices=(
                Choice("exactly these files" if action.tried else "exactly this call", exactly),
                *self._wider(action, verdict),
            ),
        )

    def _wider(self, action: Action, verdict: Verdict) -> Sequence[Choice]:
        """A wider rule outranks the rule that asked; if none did, rules that ask keep asking."""
        asked = verdict.rule is not None
        return [Choice(each.sentence, widen(each.rule, action, outranks=asked)) for each in self._offers(action)]

    async def _ask(self, action: Action, request: Request, channels: Sequence[Channel], version: str) -> Approval:
        asked = self._now()
        self._emit_requested(request, request.id, [channel.name for channel in channels])
        answer = first_answer(request, channels, self._timeout)
        return await self._conclude(action, request, answer, version, question=request.id, asked=asked)

    async def _defer(self, peer: Peer, request: Request) -> ToolError:
        await peer.ask(request)
        self._emit_requested(request, request.id, [PeerChannel.name])
        return ToolError(
            ErrorCode.APPROVAL_PENDING, f"{request.heading} requires approval{request.aside}: the client is asked"
        )

    async def _continue(
        self, decision: PriorApproval | PriorAnswer, action: Action, request: Request, version: str
    ) -> Approval:
        """Use the decision that the client brought. A call that was approved before it paused continues."""
        if isinstance(decision, PriorApproval):
            return Approval(by=decision.by, scope=Scope.ONCE, digest=request.digest, binding=request.binding)
        return await self._conclude_prior(decision, action, request, version)

    async def _look_up(self, action: Action, request: Request, version: str, *, holder: str) -> Approval:
        """Use a stored answer if there is one; otherwise store the question."""
        if self._pending is None:
            raise _no_channel(action)
        decided = await self._pending.take(binding=request.binding, holder=holder)
        if decided is not None:
            return await self._conclude_prior(prior_answer(decided, request.binding), action, request, version)
        question = write_question(request, action)
        waiting, new = await self._pending.file(
            binding=request.binding, holder=holder, tool=request.tool, question=question
        )
        if new:
            self._emit_requested(request, waiting.id, ["pending"])
            logger.warning(
                "a call to %r waits for approval: see `toolreeve approvals show %s`", request.tool, waiting.id
            )
        raise _pending(request, waiting)

    async def _conclude_prior(self, prior: PriorAnswer, action: Action, request: Request, version: str) -> Approval:
        answer = client_answer(request, prior)
        return await self._conclude(action, request, answer, version, question=prior.question, asked=prior.asked)

    async def _conclude(
        self,
        action: Action,
        request: Request,
        answer: Awaitable[Answer],
        version: str,
        *,
        question: str,
        asked: float,
    ) -> Approval:
        outcome: Mapping[str, Any] = {"outcome": "withdrawn"}
        try:
            approval = await self._accept(action, request, await answer, version)
            outcome = _granted(approval)
            return approval
        except ToolError as refusal:
            outcome = {"outcome": _OUTCOMES[refusal.code], "note": refusal.message}
            raise
        finally:
            data = {"tool_id": request.tool, "request": question, **outcome, "waited": self._now() - asked}
            self._emit_event("approval_resolved", request, data)

    def _emit_requested(self, request: Request, question: str, channels: Sequence[str]) -> None:
        data = {
            "tool_id": request.tool,
            "request": question,
            "danger": request.danger.value,
            "reason": request.verdict.reason,
            "rule": request.verdict.rule,
            "channels": list(channels),
            "timeout": self._timeout,
        }
        self._emit_event("approval_requested", request, data)

    async def _accept(self, action: Action, request: Request, answer: Answer, version: str) -> Approval:
        if answer.granted is not True:
            raise ToolError(ErrorCode.APPROVAL_DENIED, _refused(request, answer))
        if digest(await action.again(), version=version, request=request.id) != request.digest:
            raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: the call changed while it was being approved")
        if not 0 <= answer.choice < len(request.choices):
            raise ToolError(ErrorCode.PERMISSION, f"{request.heading}: the answer chose what was not offered")
        once = Approval(
            by=answer.by,
            scope=Scope.ONCE,
            note=answer.note,
            args=answer.args,
            digest=request.digest,
            only=answer.only,
        )
        if answer.args is not None or answer.only is not None:
            return once  # grants are about the call that was asked and all that it changes
        once = replace(once, binding=request.binding)
        match answer.scope:
            case Scope.ONCE:
                return once
            case Scope.SESSION:
                return await self._grant(action, request, answer, version, once)
            case Scope.ALWAYS:
                return await self._write(until(request.choices[answer.choice].rule, answer.expires), once)

    async def _grant(self, action: Action, request: Request, answer: Answer, version: str, once: Approval) -> Approval:
        """If the grant cannot be stored, the approval holds once."""
        if self._grants is None:
            return once
        choice = request.choices[answer.choice] if answer.choice else None
        try:
            stored = await self._grants.add(
                action,
                version=version,
                by=answer.by,
                rule=None if choice is None else choice.rule,
                sentence="" if choice is None else choice.sentence,
                asked_by=request.verdict.rule,
                expires=answer.expires,
                uses=None if answer.uses is None else answer.uses - 1,
            )
        except ToolError as problem:
            return replace(once, problem=f"the grant could not be stored: {problem}")
        return replace(once, scope=Scope.SESSION) if stored else once

    async def _write(self, rule: AlwaysRule, once: Approval) -> Approval:
        """If the rule cannot be written, the approval holds once and carries the problem."""
        if self._remember is None:
            return replace(once, problem="no rule can be written here")
        try:
            return replace(once, scope=Scope.ALWAYS, remembered=await self._remember(rule))
        except (OSError, ToolreeveError) as problem:
            return replace(once, problem=f"the rule could not be written: {problem}")

    def _emit_event(self, kind: str, request: Request, data: Mapping[str, Any]) -> None:
        self._emit(Event(event=kind, task_id=request.call_id, component="approval", data=data, at=self._now()))


def _granted(approval: Approval) -> Mapping[str, Any]:
    return {
        "outcome": "granted",
        "by": approval.by,
        "scope": str(approval.scope),
        "note": approval.note,
        "edited": approval.args is not None,
        **({} if approval.only is None else {"only": list(approval.only)}),
        "remembered": approval.remembered,
        "problem": approval.problem,
    }


_OUTCOMES = {
    ErrorCode.APPROVAL_DENIED: "denied",
    ErrorCode.APPROVAL_TIMEOUT: "timeout",
    ErrorCode.PERMISSION: "unanswered",
}


def _no_channel(action: Action) -> ToolError:
    why = grounds_of(action)
    data = f"Tool {action.spec.name!r} (danger={action.danger.value}) requires approval but nobody can be asked"
    return ToolError(
        ErrorCode.PERMISSION,
        f"{data}: {why}" if why else data,
        suggestions=suggest_channels(action.call.origin, beforehand=action.tool.grounds is None),
    )


def _refused(request: Request, answer: Answer) -> str:
    by = f" by {answer.by}" if answer.by else ""
    note = f": {answer.note}" if answer.note else ""
    return f"{request.heading} was refused{by}{note}{request.aside}"


def _pending(request: Request, waiting: PendingApproval) -> ToolError:
    data = {"status": "pending", "approval_id": waiting.id, "expires": waiting.expires}
    return ToolError(
        ErrorCode.APPROVAL_PENDING,
        f"{request.heading} requires approval, and nobody can be asked now{request.aside}. Nothing has taken effect."
        f" The approval {waiting.id!r} is pending: a person must decide it, on their own terminal",
        suggestions=(
            f"tell the person that the approval {waiting.id!r} is pending",
            "after they have decided, repeat the call",
        ),
        detail=data,
        data=data,
    )
