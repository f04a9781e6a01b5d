"""Endpoints of approvals: the inbox, decisions, edits, history and grants.

Every decision is recorded by the store that makes it; the first one counts.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.approval.decision import (
    AlreadyAnswered,
    Counted,
    Decided,
    Expired,
    Invalid,
    NotAllowed,
    Outcome,
    QuestionChanged,
    TooEarly,
    UnknownQuestion,
)
from toolreeve.core.errors import ErrorCode, ToolreeveError
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints, Query
from toolreeve.serve.api.problems import Problem, not_found
from toolreeve.serve.api.tools import Arguments
from toolreeve.serve.tokens import AccessScope

MAX_BATCH = 100
MAX_COUNTED = 500
approvals = Endpoints("approvals")
State = Literal["pending", "allowed", "edited", "denied", "used", "expired", "withdrawn", "settled", "all"]
SHOWN_TO_ALL = (
    "id",
    "tool",
    "danger",
    "user",
    "session",
    "client",
    "state",
    "asked",
    "expires",
    "answered_by",
    "changed",
)


class ApprovalQuery(Query):
    state: State = "pending"
    cursor: Annotated[str | None, Field(max_length=200)] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50


class HistoryQuery(Query):
    cursor: Annotated[str | None, Field(max_length=200)] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 50


class ApprovalList(TypedDict):
    """Cards without arguments and changes; `cursor` continues the list. `total` counts what is pending."""

    approvals: list[dict[str, Any]]
    cursor: str | None
    total: int


class DecideBody(Body):
    """`digest` is that of the card that the person saw. `keep` are the paths of the changes to keep, `args` the edited
    arguments, which are judged anew. `know` keeps what the card calls `knowable` as known recipients."""

    digest: Annotated[str, Field(min_length=1, max_length=200)]
    answer: Literal["allow", "deny"]
    scope: Literal["once", "session", "always"] = "once"
    choice: Annotated[int, Field(ge=0, le=100)] = 0
    note: Annotated[str, Field(max_length=4000)] = ""
    keep: Annotated[list[str] | None, Field(max_length=10_000)] = None
    args: Arguments | None = None
    expires: Annotated[float | None, Field(gt=0, strict=False, description="Until when a grant holds.")] = None
    uses: Annotated[int | None, Field(ge=1, le=1_000_000)] = None
    know: bool = False
    held_ms: Annotated[int | None, Field(ge=0, description="How long the button was held, for CRITICAL.")] = None


class BatchItem(DecideBody):
    id: Annotated[str, Field(min_length=1, max_length=200)]


class BatchDecideBody(Body):
    items: Annotated[list[BatchItem], Field(min_length=1, max_length=MAX_BATCH)]


class DecisionMade(TypedDict):
    """`missing` counts the approvals by other people that the call still needs."""

    id: str
    call_id: str
    state: str
    missing: int


class BatchDecisions(TypedDict):
    """One per item, in order: the decision, or problem details."""

    results: list[dict[str, Any]]


class GrantList(TypedDict):
    grants: list[dict[str, Any]]


@approvals.get("/approvals")
async def list_approvals(request: ApiRequest, query: ApprovalQuery) -> ApprovalList:
    """List the questions: what is pending, oldest first; the others, newest first."""
    inbox = request.services.reeve.approvals
    try:
        page = await inbox.list(state=query.state, cursor=query.cursor, limit=query.limit)
    except (ToolreeveError, ValueError):
        raise Problem(422, f"the cursor {query.cursor!r:.100} does not belong to this list") from None
    items = [show_card(request, each) for each in page.items if request.view.includes(each)]
    return {"approvals": items, "cursor": page.cursor, "total": await count_pending(request)}


@approvals.get("/approvals/history", AccessScope.APPROVE)
async def show_history(request: ApiRequest, query: HistoryQuery) -> dict[str, Any]:
    """Decisions, newest first, what is pending, and what governors said."""
    return await request.services.reeve.approvals.history(limit=query.limit, cursor=query.cursor)


@approvals.get("/approvals/{number}")
async def show_approval(request: ApiRequest, number: str) -> dict[str, Any]:
    """Show the whole card of a question. Those who may answer it count as having seen it."""
    mark = AccessScope.APPROVE in request.credential.scopes
    card = await request.services.reeve.approvals.show(number, mark=mark)
    if card is None or not request.view.includes(card):
        raise not_found(f"no approval {number!r:.100}")
    return show_card(request, card)


@approvals.post("/approvals/{number}/decide", AccessScope.APPROVE)
async def decide_approval(request: ApiRequest, number: str, body: DecideBody) -> DecisionMade:
    """Allow or deny, once, for the session or always; with edited arguments, or for some of the changes."""
    return await _decide(request, number, body)


@approvals.post("/approvals/decide", AccessScope.APPROVE)
async def decide_approvals(request: ApiRequest, body: BatchDecideBody) -> BatchDecisions:
    """Decide several questions, each by itself; CRITICAL ones only one at a time."""
    results: list[dict[str, Any]] = []
    for item in body.items:
        try:
            await _refuse_critical(request, item.id, len(body.items))
            results.append(dict(await _decide(request, item.id, item)))
        except Problem as problem:
            results.append({"id": item.id, **problem.to_dict()})
    return {"results": results}


@approvals.get("/policy/grants", AccessScope.CALL)
async def list_grants(request: ApiRequest) -> GrantList:
    """The approvals that hold for a session."""
    found = [each.to_dict() for each in await request.services.reeve.approvals.grants()]
    return {"grants": [each for each in found if request.view.includes({**each, "workspace": request.view.workspace})]}


@approvals.delete("/policy/grants/{number}", AccessScope.APPROVE)
async def revoke_grant(request: ApiRequest, number: str) -> None:
    """End a grant at once, in all processes."""
    if not await request.services.reeve.approvals.revoke(number, by=request.credential.principal):
        raise not_found(f"no grant {number!r:.100}")


async def count_pending(request: ApiRequest) -> int:
    """How many questions are pending that the credential may know of; of others than all, at most `MAX_COUNTED`."""
    inbox = request.services.reeve.approvals
    if request.credential.sees_all:
        return await inbox.count()
    return sum(request.view.includes(each) for each in (await inbox.list(limit=MAX_COUNTED)).items)


def show_card(request: ApiRequest, card: Mapping[str, Any]) -> dict[str, Any]:
    """The card, without what the call is about for those who may not see it."""
    if request.view.reveals(card):
        return dict(card)
    kept = {key: card[key] for key in SHOWN_TO_ALL if key in card}
    words = f"{card.get('client') or 'A client'} wants to use `{card.get('tool')}`"
    return {**kept, "sentence": words, "short": words, "hidden": True}


async def _decide(request: ApiRequest, number: str, body: DecideBody) -> DecisionMade:
    terms = body.model_dump(exclude={"held_ms", "id"})
    by = request.credential.principal
    outcome = await request.services.reeve.approvals.decide(number, **terms, by=by, channel=request.credential.channel)
    return _made(number, outcome)


async def _refuse_critical(request: ApiRequest, number: str, count: int) -> None:
    card = await request.services.reeve.approvals.show(number, mark=False)
    if count > 1 and card is not None and card.get("danger") == "critical":
        raise Problem(422, "a CRITICAL call is decided by itself, not in a batch")


def _made(number: str, outcome: Outcome) -> DecisionMade:
    """Raises Problem for an answer that does not count."""
    match outcome:
        case Decided(call_id=call_id, state=state):
            return {"id": number, "call_id": call_id, "state": state, "missing": 0}
        case Counted(given=given, needed=needed):
            return {"id": number, "call_id": "", "state": "pending", "missing": needed - given}
        case AlreadyAnswered(by=by, at=at, channel=channel, granted=granted):
            word = "allowed" if granted else "denied"
            raise Problem(409, f"{by} has {word} it already", answered_by=by, at=at, channel=channel, answer=word)
        case Expired(state=state):
            ended = "nobody answered in time" if state == "expired" else f"the question is {state}"
            raise Problem(410, ended, code=ErrorCode.APPROVAL_TIMEOUT, state=state)
        case QuestionChanged(digest=digest):
            detail = "the question has changed since it was shown; look at it again"
            raise Problem(422, detail, new_id=number, digest=digest)
        case TooEarly(seconds=seconds):
            raise Problem(425, "the answer came before anybody can have read the question", seconds=seconds)
        case NotAllowed(reason=reason):
            raise Problem(403, reason, code=ErrorCode.PERMISSION)
        case Invalid(problem=problem):
            raise Problem(422, problem)
        case UnknownQuestion():
            raise not_found(f"no approval {number!r:.100}")
