"""Deciding a stored question: who may answer it, when, and the outcome.

Every channel decides here. The first answer counts, by a compare-and-set in the store; an answer that does not count is
recorded with the reason, and changes nothing.
"""

import math
from dataclasses import dataclass, replace

from toolreeve.approval.pending import PENDING, PendingApproval, PendingApprovals, write_answer
from toolreeve.approval.request import Answer, Request, Scope
from toolreeve.core.call import Role

VIEWER = "a viewer may not answer approvals: it needs the role operator or admin"
OWN = "this call needs {count} approvals, and its own caller may give none of them"
EACH_TIME = "this call needs {count} approvals each time: allow it once"
UNNAMED = "this call needs {count} approvals, and a link does not say who answers: log in to approve it"
AGAIN = "this call needs {count} approvals by different people"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The answer counts; `call_id` is the call that it is about."""

    call_id: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The approval counts, and others must allow the call, too."""

    given: int
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyAnswered:
    by: str
    at: float
    channel: str
    granted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """Nobody answered in time, or the call was withdrawn, as `state` says."""

    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionChanged:
    """The answer is about something else than what is asked now; `digest` identifies that."""

    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TooEarly:
    """Nobody can have read the question yet; `seconds` are left."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAllowed:
    """This person may not give this answer."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalid:
    """The answer is malformed, or chooses what was not offered."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownQuestion:
    """There is no such question."""


Outcome = (
    Decided | Counted | AlreadyAnswered | Expired | QuestionChanged | TooEarly | NotAllowed | Invalid | UnknownQuestion
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Respondent:
    """Who answers: `user` is the principal, `channel` how they were reached. Programs that answer for somebody
    (`is_person` False) need no time to read. The holder of a link may be anyone (`is_named` False)."""

    user: str
    channel: str
    role: Role = Role.OPERATOR
    is_person: bool = True
    is_named: bool = True


async def decide(
    store: PendingApprovals,
    row: PendingApproval,
    request: Request,
    answer: Answer,
    approver: Respondent,
    *,
    now: float,
    dead_time: float = 0.0,
    use: bool = False,
) -> Outcome:
    """`use` takes a decided answer at once, for the call that waits."""
    answer = replace(answer, approver=answer.approver or approver.user, channel=answer.channel or approver.channel)
    if not answer.by:
        answer = replace(answer, by=f"{approver.user} via {approver.channel}")
    if (obstacle := _find_obstacle(row, request, answer, approver, now, dead_time)) is not None:
        await store.refuse(row, write_answer(answer, request), describe(obstacle))
        return obstacle
    voted = await store.vote(row.id, write_answer(answer, request), use=use)
    match voted:
        case "decided":
            return Decided(call_id=request.call_id, state="allowed" if answer.granted else "denied")
        case "counted":
            counted = await store.find(row.id)
            return Counted(given=1 if counted is None else len(counted.votes), needed=request.approvals)
        case "repeated":
            return NotAllowed(reason=AGAIN.format(count=request.approvals))
    return settled(await store.find(row.id))


def settled(row: PendingApproval | None) -> Outcome:
    """Why a question can no longer be answered."""
    if row is None:
        return UnknownQuestion()
    if row.answer is None:
        return Expired(state=row.state)
    answer = row.answer
    at = answer.get("at") or row.asked
    return AlreadyAnswered(by=answer["by"], at=at, channel=answer.get("channel", ""), granted=answer["granted"] is True)


def _find_obstacle(
    row: PendingApproval, request: Request, answer: Answer, approver: Respondent, now: float, dead_time: float
) -> Outcome | None:
    if approver.role is Role.VIEWER:
        return NotAllowed(reason=VIEWER)
    if row.state != PENDING:
        return settled(row)
    if answer.digest != request.digest:
        return QuestionChanged(digest=request.digest)
    elapsed = now - (row.asked if row.shown is None else row.shown)
    if approver.is_person and elapsed < dead_time:
        return TooEarly(seconds=dead_time - elapsed)
    if answer.granted is not True:
        return None
    if request.approvals > 1 and (reason := _find_four_eyes_reason(request, answer, approver)):
        return NotAllowed(reason=reason.format(count=request.approvals))
    if answer.scope is Scope.ALWAYS and request.withheld:
        return NotAllowed(reason=f"not always: {request.withheld}")
    if not 0 <= answer.choice < max(1, len(request.choices)):
        return Invalid(problem=f"choice {answer.choice} was not offered")
    if (answer.uses is not None and answer.uses < 1) or not math.isfinite(answer.expires or 0.0):
        return Invalid(problem="`uses` is at least 1, and `expires` a time: leave them out for no limit")
    if answer.know and (not request.knowable or answer.args is not None):
        return Invalid(problem="no recipient of this very call can be kept as known: leave out `know`")
    return None


def _find_four_eyes_reason(request: Request, answer: Answer, approver: Respondent) -> str:
    """Why an approval is none of those by different people; empty if it may be."""
    if not approver.is_named:
        return UNNAMED
    if approver.user == request.principal.user:
        return OWN
    return "" if answer.scope is Scope.ONCE else EACH_TIME


def describe(obstacle: Outcome) -> str:
    """Why an answer does not count."""
    match obstacle:
        case AlreadyAnswered(by=by):
            return f"too late: answered by {by}"
        case Expired(state=state):
            return f"too late: {state}"
        case QuestionChanged():
            return "about another question"
        case TooEarly():
            return "too early to have been read"
        case NotAllowed(reason=reason):
            return reason
        case Invalid(problem=problem):
            return problem
    return "no such question"
