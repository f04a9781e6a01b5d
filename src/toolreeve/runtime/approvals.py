"""Approvals of a runtime: list, show and decide questions, and revoke grants.

What every channel outside the call uses: the web console, the HTTP interface, the command line, a signed link. Nothing
is decided here that `approval.decision` does not decide, and nothing is shown that is not redacted.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.approval.card import card, redact_texts
from toolreeve.approval.channel import JudgeEdit
from toolreeve.approval.decision import (
    Invalid,
    Outcome,
    QuestionChanged,
    Respondent,
    UnknownQuestion,
    decide,
)
from toolreeve.approval.links import LinkSigner
from toolreeve.approval.pending import read_question
from toolreeve.approval.request import Answer, Request, Scope
from toolreeve.core.call import Principal
from toolreeve.core.errors import ToolError, ToolreeveError
from toolreeve.core.grants import Grant, GrantStore
from toolreeve.record.audit import Audit, Filter
from toolreeve.record.journal import GOVERNOR
from toolreeve.record.pending import PendingStore
from toolreeve.record.pending_table import PENDING, STATES, ListedRow, PendingRow

LINK = "link"
"""The channel of whoever holds a link."""
SETTLED = tuple(state for state in STATES if state != PENDING)
_STATES: Mapping[str, Sequence[str]] = {"all": (), "settled": SETTLED, **{state: (state,) for state in STATES}}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage:
    """`cursor` continues the list; None at its end."""

    items: Sequence[dict[str, Any]]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalChange:
    """A question was asked, shown elsewhere, answered, used, withdrawn, or it expired, in any process. `changed` is its
    place in the order of all changes."""

    id: str
    state: str
    changed: int
    summary: Mapping[str, Any]


class Approvals:
    """`store` holds the rows themselves. `dead_time` is how many seconds after a question is first shown no person can
    have read it. `home` is written as `~` in sentences."""

    def __init__(
        self,
        store: PendingStore,
        grants: GrantStore,
        *,
        now: Callable[[], float],
        judge_edit: JudgeEdit,
        audit: Audit,
        redact: Callable[[str], str] = str,
        home: str = "",
        dead_time: float = 0.0,
        links: LinkSigner | None = None,
        link_url: str = "",
    ) -> None:
        self.store = store
        self._grants = grants
        self._now = now
        self.judge_edit = judge_edit
        self._audit = audit
        self._redact = redact
        self._home = home
        self._dead_time = dead_time
        self._links = links
        self._link_url = link_url.rstrip("/")

    async def list(
        self, *, state: str = PENDING, cursor: str | None = None, limit: int = 50, newest_first: bool | None = None
    ) -> QuestionPage:
        """`state` is one of the states, "settled" or "all". What is pending comes oldest first, all else newest first.
        Items are cards without arguments, effects and changes: `show` has those."""
        if state not in _STATES:
            raise ToolreeveError(f"state {state!r:.40} is not one of {', '.join(_STATES)}")
        backwards = state != PENDING if newest_first is None else newest_first
        page = await self.store.page(states=_STATES[state], cursor=cursor, limit=limit, newest_first=backwards)
        return QuestionPage(items=[self._item(row) for row in page.rows], cursor=page.cursor)

    async def count(self) -> int:
        """How many questions are pending."""
        return await self.store.count()

    async def show(self, number: str, *, mark: bool = True) -> dict[str, Any] | None:
        """The question card; None if there is no such question. A unique prefix of its id is enough. `mark` notes that
        a person can see it now."""
        row = await self.store.find(number)
        if row is None:
            return None
        if mark:
            await self.store.mark_shown(row)
        return self.card(row)

    def card(self, row: PendingRow) -> dict[str, Any]:
        """The card of a row that was read before."""
        return card(row, home=self._home, redact=self._redact)

    async def decide(
        self,
        number: str,
        *,
        answer: str,
        by: Principal | str,
        digest: str | None = None,
        scope: Scope | str = Scope.ONCE,
        choice: int = 0,
        note: str = "",
        keep: Sequence[str] | None = None,
        args: Mapping[str, Any] | None = None,
        expires: float | None = None,
        uses: int | None = None,
        know: bool = False,
        channel: str = "python",
        dead_time: float | None = None,
    ) -> Outcome:
        """Answer "allow" or "deny". `digest` is that of the card which the person saw; None only for a channel that has
        just read the row. `keep` are the paths of the changes to keep, `args` the edited arguments, `expires` until
        when a session or always holds, in seconds since the epoch, `uses` how often in the session. `know` keeps the
        recipients of the card's `knowable` as known ones."""
        row = await self.store.find(number)
        if row is None or row.id != number:
            return UnknownQuestion()
        request = read_question(row.id, row.question)
        try:
            terms = {"choice": choice, "args": args, "expires": expires, "uses": uses, "know": know}
            given = _new_answer(request, answer, scope=scope, note=note, keep=keep, **terms)
            if args is not None:
                await self.judge_edit(request, args)
        except (ValueError, ToolError) as problem:
            return Invalid(problem=str(problem))
        if digest is not None and digest != request.digest:
            return QuestionChanged(digest=request.digest)
        return await decide(
            self.store,
            row,
            request,
            given,
            _approver(by, channel),
            now=self._now(),
            dead_time=self._dead_time if dead_time is None else dead_time,
        )

    def new_link(self, request: Request) -> str:
        """A link whose holder can see the question and, in a second step, answer it once. For approvers only, never for
        the caller's own client."""
        return f"{self._link_url}/approve/{self._signer.sign(request.id, request.digest)}"

    async def open_link(self, token: str) -> dict[str, Any] | None:
        """The card that a link leads to; None if the question is gone. Decides nothing. Raises BadLink."""
        return await self.show(self._signer.verify(token).question)

    async def decide_by_link(self, token: str, *, answer: str, note: str = "") -> Outcome:
        """Answer with the link as the credential: this call only, without edits. It works once, because the question
        that it names is decided once. Raises BadLink."""
        claim = self._signer.verify(token)
        if answer not in ("allow", "deny"):
            return Invalid(problem=f"the answer must be 'allow' or 'deny', not {answer!r:.40}")
        return await self.decide(
            claim.question, answer=answer, by="holder", digest=claim.digest, note=note, channel=LINK
        )

    @property
    def _signer(self) -> LinkSigner:
        if self._links is None:
            raise ToolreeveError("this runtime makes no links")
        return self._links

    async def changes(self, since: int | None = None) -> AsyncGenerator[ApprovalChange, None]:
        """Every change from now on, or after the change `since`, of any process that shares the record."""
        async for row in self.store.changes(since):
            yield ApprovalChange(id=row.id, state=row.state, changed=row.changed, summary=self._item(row))

    async def history(self, *, limit: int = 50, cursor: str | None = None) -> dict[str, Any]:
        """Decisions, newest first, what is pending, and what governors said, about agents' answers as well."""
        page = await self.store.page(states=SETTLED, cursor=cursor, limit=limit, newest_first=True)
        rows = [found for row in page.rows if (found := await self.store.find(row.id)) is not None]
        waiting = await self.store.page(states=(PENDING,), limit=limit)
        made = {
            "permissionDecisions": [_decision(row) for row in rows if row.answer is not None],
            "pendingPermissions": [self._item(row) for row in waiting.rows],
            "governorFeedback": [*(said for row in rows for said in row.feedback), *await self._reviews(limit, cursor)],
            "cursor": page.cursor,
        }
        redacted: dict[str, Any] = redact_texts(made, self._redact)
        return redacted

    async def _reviews(self, limit: int, cursor: str | None) -> Sequence[Mapping[str, Any]]:
        """What governors said about the answers of agents, which are no questions: with the first page."""
        if cursor is not None:
            return ()
        found = await self._audit.list(Filter(kind=GOVERNOR), limit=limit)
        return [{key: each.body.get(key) for key in ("phase", "timestamp", "summary", "results")} for each in found]

    async def grants(self) -> Sequence[Grant]:
        """The approvals that hold for a session, oldest first."""
        return await self._grants.list()

    async def revoke(self, number: str, *, by: Principal | str) -> bool:
        """End a grant at once, in all processes; False if there is none with this id or unique prefix."""
        return await self._grants.revoke(number, by=by if isinstance(by, str) else by.user)

    def _item(self, row: ListedRow) -> dict[str, Any]:
        answer = row.answer
        item = {
            "id": row.id,
            "tool": row.tool,
            "state": row.state,
            "asked": row.asked,
            "expires": row.expires,
            **row.summary,
            "answered_by": None if answer is None else answer.get("by"),
            "granted": None if answer is None else answer["granted"] is True,
            "changed": row.changed,
        }
        redacted: dict[str, Any] = redact_texts(item, self._redact)
        return redacted


def _approver(by: Principal | str, channel: str) -> Respondent:
    if isinstance(by, str):
        return Respondent(user=by, channel=channel, is_named=channel != LINK)
    return Respondent(user=by.user, role=by.role, channel=channel)


def _new_answer(request: Request, answer: str, *, keep: Sequence[str] | None, note: str, **terms: Any) -> Answer:
    """Raises ValueError."""
    if answer == "deny":
        return request.deny(note=note)
    if answer != "allow":
        raise ValueError(f"the answer must be 'allow' or 'deny', not {answer!r:.40}")
    if request.tried and terms["args"] is not None:
        raise ValueError("the call has run on trial already: its arguments cannot be edited")
    scope = Scope(terms.pop("scope"))
    if scope is not Scope.ONCE and (keep is not None or terms["args"] is not None):
        raise ValueError("edited arguments and a choice of changes hold once: leave out the scope")
    return request.allow(note=note, scope=scope, only=keep, **terms)


def _decision(row: PendingRow) -> dict[str, Any]:
    answer = row.answer or {}
    channel = answer.get("channel", "")
    source = answer.get("by", "") if channel in ("policy", "governor") else f"person:{answer.get('by', '')}"
    return {
        "id": row.id,
        "toolCallId": row.question["call_id"],
        "source": source,
        "optionId": answer.get("option") or ("allow" if answer.get("granted") is True else "deny"),
        "governorsInvolved": [result["governorId"] for said in row.feedback for result in said.get("results", ())],
        "timestamp": answer.get("at") or row.asked,
        "metadata": {"summary": row.summary.get("sentence", row.tool), "state": row.state},
    }
