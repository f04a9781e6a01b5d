"""Automatic answers: auto-approval policies, then governors, before any person is asked.

A policy's approval stands only if no governor rejects, or if it says that none is asked. Governors alone approve only
if the operator said so, and all of them do. Whatever is unclear goes to a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolreeve.approval.auto_approval import AutoPolicy, AutoType, Covers, find_policy
from toolreeve.approval.governors import GovernorResult, Governors, Review
from toolreeve.approval.request import Request
from toolreeve.core.action import Action

POLICY = "policy"
GOVERNOR = "governor"


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticAnswer:
    """`granted` is None if a person must decide; `by` is the policy or governor that decided, `channel` which of them,
    `feedback` what governors said, `option` the id that was named."""

    granted: bool | None
    by: str = ""
    channel: str = ""
    reason: str = ""
    option: str = ""
    feedback: Sequence[Mapping[str, Any]] = ()


class AutomaticApproval:
    def __init__(self, policies: Sequence[AutoPolicy], governors: Governors | None, *, covers: Covers) -> None:
        self._policies = tuple(policies)
        self._governors = governors
        self._covers = covers

    async def answer(self, action: Action, request: Request) -> AutomaticAnswer:
        policy = find_policy(self._policies, action, self._covers)
        decided = _by_policy(policy)
        if policy is not None and (policy.type is AutoType.REJECT or policy.skip_governors):
            return decided
        review = await self._review(action, request, policy)
        if review is None:
            return decided
        return self._combine(decided, review)

    async def _review(self, action: Action, request: Request, policy: AutoPolicy | None) -> Review | None:
        if self._governors is None or not self._governors.settings.permission:
            return None
        return await self._governors.review_call(
            describe_call(action, request),
            task=request.call_id,
            session=request.session,
            policies=[] if policy is None else [_describe_policy(policy)],
        )

    def _combine(self, decided: AutomaticAnswer, review: Review) -> AutomaticAnswer:
        feedback = (review.to_dict(),)
        if (veto := review.rejected) is not None:
            return AutomaticAnswer(
                granted=False,
                by=f"{GOVERNOR}:{veto.governor}",
                channel=GOVERNOR,
                reason=_words(veto),
                option=veto.option,
                feedback=feedback,
            )
        if decided.granted is True and not review.needs_person:
            return replace(decided, feedback=feedback)
        settings = self._governors.settings if self._governors is not None else None
        alone = decided.by == "" and settings is not None and settings.auto_decision == "all_approve"
        if alone and review.all_approve:
            names = ",".join(each.governor for each in review.results)
            option = next((each.option for each in review.results if each.option), "")
            return AutomaticAnswer(
                granted=True, by=f"{GOVERNOR}:{names}", channel=GOVERNOR, option=option, feedback=feedback
            )
        return AutomaticAnswer(granted=None, feedback=feedback)


def describe_call(action: Action, request: Request) -> dict[str, Any]:
    """What a governor sees of the call: what it would do, never what tools returned."""
    return {
        "id": request.call_id,
        "tool": request.tool,
        "danger": request.danger.value,
        "rawInput": dict(request.args),
        "effects": [{"kind": each.kind.value, "target": each.target} for each in request.effects],
        "client": action.call.client,
        "user": request.principal.user,
        "reason": request.verdict.reason,
    }


def _by_policy(policy: AutoPolicy | None) -> AutomaticAnswer:
    if policy is None:
        return AutomaticAnswer(granted=None)
    granted = {AutoType.APPROVE: True, AutoType.REJECT: False, AutoType.MANUAL: None}[policy.type]
    return AutomaticAnswer(
        granted=granted, by=f"{POLICY}:{policy.id}", channel=POLICY, reason=policy.reason, option=policy.option
    )


def _describe_policy(policy: AutoPolicy) -> dict[str, Any]:
    return {"id": policy.id, "type": str(policy.type), "optionId": policy.option or None, "reason": policy.reason}


def _words(result: GovernorResult) -> str:
    return "; ".join(result.messages)
