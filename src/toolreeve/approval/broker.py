"""The approval broker: session grants, automatic answers, then people.

Every question is a row in the store before anyone sees it; channels show it, and the first answer to the row counts.
Only an explicit, strictly boolean yes that fits the request is an approval: not silence, not an error, not a truthy
value. Silence is never reported as a refusal. A client that cannot be asked during its call must repeat the call: with
the answer, if it can show the question itself, or after a person has answered the pending approval.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.approval.acceptance import Acceptance, Remember
from toolreeve.approval.always_rule import new_always_rule, rule_text, widen
from toolreeve.approval.answers import LiveQuestion, NoUsableAnswer, client_answer, prior_answer
from toolreeve.approval.automatic import AutomaticAnswer, AutomaticApproval
from toolreeve.approval.card import find_withheld, summarize
from toolreeve.approval.channel import Announcer, Channel
from toolreeve.approval.channels.peer import PeerChannel
from toolreeve.approval.decision import AlreadyAnswered, Decided, Respondent, decide
from toolreeve.approval.events import ApprovalEvents, Emit
from toolreeve.approval.grants import Grants
from toolreeve.approval.memory import MemoryApprovals
from toolreeve.approval.pending import (
    PendingApproval,
    PendingApprovals,
    holder_of,
    read_answer,
    write_answer,
    write_question,
)
from toolreeve.approval.refusals import DISMISSED, no_channel, still_pending, timed_out, unanswered
from toolreeve.approval.request import Answer, Approval, Choice, Request, Scope, digest, pose
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.events import Event
from toolreeve.core.peer import NoAnswer, Peer, PriorAnswer, PriorApproval
from toolreeve.core.verdict import Decision, Verdict

logger = logging.getLogger(__name__)
Preview = Callable[[Action], Awaitable[str]]
FindChoices = Callable[[Action], Sequence[Choice]]
FindFacts = Callable[[Action], Mapping[str, Any]]


def _no_choices(_: Action) -> Sequence[Choice]:
    """The default `offers`."""
    return ()


def _no_facts(_: Action) -> Mapping[str, Any]:
    """The default `facts`."""
    return {}


def _ignore(_: Event) -> None:
    """The default `emit`."""


class Broker:
    """`remember` writes the rule of an "always" and returns its location; without it "always" is not offered.
    `preview` shows what a call would change, `facts` finds what else a person is shown. `pending` stores the questions,
    by default in memory. `offers` finds what a yes for longer may cover beyond the very call. Without `grants`, a yes
    for the session holds once. `escalation` is after how many seconds the next channel is asked; 0 asks all at once.
    `automatic` answers by policies and governors."""

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
        facts: FindFacts = _no_facts,
        home: str = "",
        escalation: float = 0.0,
        automatic: AutomaticApproval | None = None,
    ) -> None:
        if timeout <= 0:
            raise ToolreeveError(f"the approval timeout must be positive, not {timeout!r}")
        self.channels = tuple(channels)
        self._grants = grants
        self._offers = offers
        self._now = now
        self._timeout = timeout
        self._events = ApprovalEvents(emit, now=now, timeout=timeout, home=home)
        self._can_remember = remember is not None
        self._acceptance = Acceptance(grants, remember)
        self._preview = preview
        self._keeps = pending is not None
        self._store: PendingApprovals = MemoryApprovals() if pending is None else pending
        self._facts = facts
        self._home = home
        self._escalation = escalation
        self._automatic = automatic

    def can_ask(self, call: ToolCall) -> bool:
        """Whether a question about the call reaches anyone, now or later."""
        return (
            call.peer is not None
            or self._automatic is not None
            or any(channel.available() for channel in self.channels)
        )

    async def settle(self, action: Action, verdict: Verdict, *, version: str = "", preview: str = "") -> Approval:
        """`preview` shows what the call changed on trial. Raises ToolError: APPROVAL_DENIED, APPROVAL_TIMEOUT,
        PERMISSION if nobody can be asked, or APPROVAL_PENDING if the caller must repeat the call."""
        if verdict.decision is not Decision.ASK:
            raise ToolreeveError(f"only an ASK verdict can be approved, not {verdict.decision.word}")
        if (granted_by := await self._find_grant(action, verdict, version)) is not None:
            return Approval(by=granted_by, scope=Scope.SESSION, binding=digest(action, version=version))
        channels = [channel for channel in self.channels if channel.available()]
        peer = action.call.peer
        if peer is None and not channels and self._automatic is None:
            raise no_channel(action)
        request = await self._pose(action, verdict, version, preview)
        if self._automatic is not None:
            automatic = await self._automatic.answer(action, request)
            if automatic.granted is False or (automatic.granted and request.approvals == 1):
                return await self._settle_automatically(automatic, action, request, version)
            request = replace(request, facts={**request.facts, "governors": list(automatic.feedback)})
        if peer is None and not channels:
            raise no_channel(action)
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
        """For a call by a client: the answer it brought or a person gave meanwhile, then the client itself and the
        channels, else pending."""
        decision = peer.decision
        if isinstance(decision, PriorApproval) and decision.binding == request.binding:
            return Approval(by=decision.by, scope=Scope.ONCE, digest=request.digest, binding=request.binding)
        if isinstance(decision, PriorAnswer) and decision.binding == request.binding:
            return await self._continue(decision, action, request, version)
        decided = await self._store.take(binding=request.binding, holder=_holder(action))
        if decided is not None:
            return await self._conclude_prior(prior_answer(decided, request.binding), action, request, version)
        if peer.can_ask:
            if peer.defers:
                raise await self._defer(peer, action, request)
            channels = [PeerChannel(peer), *channels]
        if any(not _announces(channel) for channel in channels):
            return await self._ask(action, request, channels, version)
        raise await self._file(action, request)

    async def _pose(self, action: Action, verdict: Verdict, version: str, preview: str) -> Request:
        if not preview and self._preview is not None:
            preview = await self._preview(action)
        exactly = new_always_rule(action)
        request = pose(
            action,
            verdict,
            version=version,
            timeout=self._timeout,
            preview=preview,
            lasting=rule_text(exactly) if self._can_remember else "",
            choices=(
                Choice("exactly these files" if action.tried else "exactly this call", exactly),
                *self._wider(action, verdict),
            ),
            facts={**self._facts(action), **_flow_facts(verdict)},
        )
        withheld = find_withheld(request)
        return replace(request, withheld=withheld, lasting="") if withheld else request

    def _wider(self, action: Action, verdict: Verdict) -> Sequence[Choice]:
        """A wider rule outranks the rule that asked; if none did, rules that ask keep asking."""
        asked = verdict.rule is not None
        return [Choice(each.sentence, widen(each.rule, action, outranks=asked)) for each in self._offers(action)]

    async def _ask(self, action: Action, request: Request, channels: Sequence[Channel], version: str) -> Approval:
        """Store the question, show it on the channels, and wait for the row to be answered."""
        names = [channel.name for channel in channels]
        request = replace(request, facts={**request.facts, "channels": names})
        try:
            row = await self._store.open(timeout=self._timeout, **self._row(request, action))
        except asyncio.CancelledError:
            await asyncio.shield(self._store.withdraw(request.id))
            raise
        request = replace(request, id=row.id, digest=row.digest)  # the same question may have been stored before
        self._events.requested(request, names)
        live = LiveQuestion(
            request,
            row,
            self._store,
            holder=_holder(action),
            timeout=self._timeout,
            now=self._now,
            escalation=self._escalation,
        )
        answer = self._answer_live(live, action, request, channels)
        return await self._conclude(action, request, answer, version, question=row.id, asked=row.asked)

    async def _answer_live(
        self, live: LiveQuestion, action: Action, request: Request, channels: Sequence[Channel]
    ) -> Answer:
        """A question that no channel answered stays pending for a client, which can repeat its call."""
        try:
            return await live.answer(channels)
        except NoUsableAnswer as problem:
            row = await self._store.find(request.id)
            if self._keeps and action.call.peer is not None and row is not None and await self._store.keep(row.id):
                raise still_pending(request, await self._store.find(row.id) or row, DISMISSED) from None
            await self._store.withdraw(request.id)
            raise unanswered(request, str(problem)) from None
        except ToolError:
            raise
        except BaseException:
            await asyncio.shield(self._store.withdraw(request.id))
            raise

    async def _settle_automatically(
        self, automatic: AutomaticAnswer, action: Action, request: Request, version: str
    ) -> Approval:
        """A question that a policy or a governor answers is stored with its answer, and shown to nobody."""
        answer = Answer(
            granted=automatic.granted is True,
            by=automatic.by,
            note=automatic.reason,
            digest=request.digest,
            channel=automatic.channel,
        )
        stored = {**write_answer(answer, request), "option": automatic.option}
        row = await self._store.settled(
            answer=stored, feedback=automatic.feedback, **self._row(replace(request, approvals=1), action)
        )
        self._events.requested(request, [automatic.channel])

        async def given() -> Answer:
            return answer

        return await self._conclude(action, request, given(), version, question=row.id, asked=row.asked)

    def _row(self, request: Request, action: Action) -> dict[str, Any]:
        return {
            "number": request.id,
            "binding": request.binding,
            "digest": request.digest,
            "holder": _holder(action),
            "tool": request.tool,
            "question": write_question(request, action),
            "summary": summarize(request, home=self._home),
            **({"feedback": request.facts["governors"]} if request.facts.get("governors") else {}),
        }

    async def _defer(self, peer: Peer, action: Action, request: Request) -> ToolError:
        """The client shows the question, and repeats the call with the answer; others may answer it as well."""
        request = replace(request, facts={**request.facts, "channels": [PeerChannel.name]})
        row, new = await self._store.file(**self._row(request, action))
        request = replace(request, id=row.id, digest=row.digest)
        await peer.ask(request)
        if new:
            self._events.requested(request, [PeerChannel.name])
        return ToolError(
            ErrorCode.APPROVAL_PENDING, f"{request.heading} requires approval{request.aside}: the client is asked"
        )

    async def _file(self, action: Action, request: Request) -> ToolError:
        """Store a question that nobody can be asked now."""
        if not self._keeps:
            return no_channel(action)
        row, new = await self._store.file(**self._row(request, action))
        if new:
            self._events.requested(replace(request, id=row.id), ["pending"])
            logger.warning("a call to %r waits for approval: see `toolreeve approvals show %s`", request.tool, row.id)
            for channel in self.channels:
                if isinstance(channel, Announcer):
                    await channel.announce(replace(request, id=row.id, digest=row.digest))
        return still_pending(request, row)

    async def _continue(self, prior: PriorAnswer, action: Action, request: Request, version: str) -> Approval:
        """Use the answer that the client brought, unless the stored question was answered before."""
        row = await self._store.find(prior.question)
        if row is None or row.id != prior.question or row.digest == "" or not prior.channel:
            return await self._conclude_prior(prior, action, request, version)
        request = replace(request, id=row.id, digest=row.digest)
        answer = self._decide_brought(prior, row, action, request)
        return await self._conclude(action, request, answer, version, question=row.id, asked=prior.asked)

    async def _decide_brought(
        self, prior: PriorAnswer, row: PendingApproval, action: Action, request: Request
    ) -> Answer:
        try:
            answer = client_answer(request, prior)
        except NoAnswer as problem:
            said = {"granted": None, "by": prior.channel, "channel": prior.channel}
            await self._store.refuse(row, said, f"no answer: {problem}")
            raise still_pending(request, row, DISMISSED) from None
        approver = Respondent(user=answer.approver, channel=prior.channel, is_person=False)
        outcome = await decide(self._store, row, request, answer, approver, now=self._now(), use=True)
        match outcome:
            case Decided():
                return answer
            case AlreadyAnswered():
                taken = await self._store.claim(row.id, holder=_holder(action))
                if taken is not None and taken.answer is not None:
                    return read_answer(request, taken.answer)
        raise timed_out(request, self._timeout)

    async def _conclude_prior(self, prior: PriorAnswer, action: Action, request: Request, version: str) -> Approval:
        async def brought() -> Answer:
            try:
                return client_answer(request, prior)
            except NoAnswer as problem:
                raise unanswered(request, str(problem)) from None

        return await self._conclude(action, request, brought(), version, question=prior.question, asked=prior.asked)

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
        try:
            approval = await self._acceptance.accept(action, request, await answer, version)
        except ToolError as refusal:
            self._events.refused(request, refusal, question=question, asked=asked)
            raise
        except BaseException:
            self._events.withdrawn(request, question=question, asked=asked)
            raise
        self._events.granted(request, approval, question=question, asked=asked)
        return approval


def _flow_facts(verdict: Verdict) -> Mapping[str, Any]:
    """Where the values that nobody vouches for come from."""
    if not verdict.provenance and not verdict.requested:
        return {}
    return {"provenance": [each.to_dict() for each in verdict.provenance], "requested": verdict.requested}


def _announces(channel: Channel) -> bool:
    return isinstance(channel, Announcer)


def _holder(action: Action) -> str:
    peer = action.call.peer
    return holder_of(action.call.principal, "" if peer is None else peer.credential)
