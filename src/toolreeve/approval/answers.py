"""Answers: shows a stored question on channels and waits for its row.

Channels only show the question; the row decides. So it may as well be answered from another process. An error, a truthy
value or the answer to another request is not an answer; its reason is kept for the error message.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.approval import pending
from toolreeve.approval.channel import Channel
from toolreeve.approval.channels.peer import user_of
from toolreeve.approval.decision import Counted, Decided, Outcome, Respondent, decide, describe
from toolreeve.approval.pending import PENDING, PendingApproval, PendingApprovals
from toolreeve.approval.refusals import timed_out
from toolreeve.approval.request import Answer, Request
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.peer import NoAnswer, PriorAnswer

WITHDRAWAL = 1.0
"""Seconds that a cancelled channel gets to withdraw its question; after that it is abandoned."""
PERSON = "person"


class NoUsableAnswer(Exception):
    """Every channel failed; the question is still pending."""


class LiveQuestion:
    """A stored question while its call waits for the answer. `escalation` is after how many seconds the next channel is
    asked as well; 0 asks all at once."""

    def __init__(
        self,
        request: Request,
        row: PendingApproval,
        store: PendingApprovals,
        *,
        holder: str,
        timeout: float,
        now: Callable[[], float],
        escalation: float = 0.0,
    ) -> None:
        self._request = request
        self._row = row
        self._store = store
        self._holder = holder
        self._timeout = timeout
        self._now = now
        self._escalation = escalation
        self._failures: list[str] = []
        self._ending = "timed out, or the call was stopped"

    async def answer(self, channels: Sequence[Channel]) -> Answer:
        """The first answer that counts, now used. Of simultaneous answers, a denial wins.

        Raises ToolError(APPROVAL_TIMEOUT), or NoUsableAnswer."""
        waiting = deque(channels)
        watching = asyncio.create_task(self._store.wait(self._row.id, timeout=self._timeout))
        asking: dict[asyncio.Task[Any], Channel] = {}
        self._ask_next(waiting, asking)
        try:
            while asking or waiting:
                pause = self._escalation if waiting else None
                done, _ = await asyncio.wait({watching, *asking}, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
                heard = [(asking.pop(task), task) for task in done if task is not watching]
                if (answer := await self._decide(heard)) is not None:
                    return answer
                if watching.done():
                    return await self._take()
                if not done or not asking:
                    self._ask_next(waiting, asking)
        finally:
            await self._withdraw([watching, *asking])
        raise NoUsableAnswer("; ".join(self._failures))

    def _ask_next(self, waiting: deque[Channel], asking: dict[asyncio.Task[Any], Channel]) -> None:
        count = 1 if self._escalation else len(waiting)
        for _ in range(min(count, len(waiting))):
            channel = waiting.popleft()
            asking[asyncio.create_task(channel.ask(self._request), name=f"ask-{channel.name}")] = channel

    async def _decide(self, heard: Sequence[tuple[Channel, asyncio.Task[Any]]]) -> Answer | None:
        answers: list[tuple[Channel, Answer]] = []
        for channel, task in heard:
            try:
                answers.append((channel, self._read(task)))
            except _Unusable as problem:
                self._failures.append(f"{channel.name}: {problem}")
                await self._record_failure(channel, str(problem))
        for channel, answer in sorted(answers, key=lambda each: each[1].granted):
            given = sign(answer, channel)
            outcome = await self._cast(channel, given)
            match outcome:
                case Decided():
                    self._ending = f"answered by {given.by}"
                    return await self._with_all_approvers(given)
                case Counted(needed=needed):
                    self._failures.append(f"{channel.name}: {needed} people must allow it")
                case _:
                    self._failures.append(f"{channel.name}: {describe(outcome)}")
        return None

    async def _cast(self, channel: Channel, answer: Answer) -> Outcome:
        approver = Respondent(user=answer.approver, channel=channel.name, is_person=False)
        return await decide(self._store, self._row, self._request, answer, approver, now=self._now(), use=True)

    async def _with_all_approvers(self, answer: Answer) -> Answer:
        if self._request.approvals == 1:
            return answer
        row = await self._store.find(self._row.id)
        return answer if row is None or row.answer is None else replace(answer, by=row.answer["by"])

    async def _record_failure(self, channel: Channel, problem: str) -> None:
        """A client that dismisses the question, or declines it before anyone can have read it, has not answered."""
        said = {"granted": None, "by": channel.name, "channel": channel.name, "note": problem}
        await self._store.refuse(self._row, said, f"no answer: {problem}")

    def _read(self, task: asyncio.Task[Any]) -> Answer:
        if task.cancelled():
            raise _Unusable("gave up")
        if (problem := task.exception()) is not None:
            raise _Unusable(f"{problem or type(problem).__name__}")
        answer = task.result()
        if not isinstance(answer, Answer) or not isinstance(answer.granted, bool):
            raise _Unusable(f"answered {answer!r:.80}, which is not an Answer")
        if answer.digest != self._request.digest:
            raise _Unusable("answered another request")
        return answer

    async def _take(self) -> Answer:
        """The answer that was given elsewhere; at the end of the time, the question expires unless it has one."""
        row = await self._store.find(self._row.id)
        has_ended = row is None or (row.answer is None and row.state != PENDING)
        if has_ended or await self._store.expire(self._row.id):
            raise timed_out(self._request, self._timeout)
        claimed = await self._store.claim(self._row.id, holder=self._holder)
        if claimed is None or claimed.answer is None:
            raise ToolError(
                ErrorCode.PERMISSION, f"{self._request.heading}: its approval was withdrawn or used already"
            )
        self._ending = f"answered by {claimed.answer['by']}"
        return pending.read_answer(self._request, claimed.answer)

    async def _withdraw(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """Each channel gets the reason, and withdraws its question."""
        for task in tasks:
            task.cancel(self._ending)
        await asyncio.wait(tasks, timeout=WITHDRAWAL)


class _Unusable(Exception):
    """What a channel returned is not an answer to this request."""


def sign(answer: Answer, channel: Channel) -> Answer:
    """With the name of the approver, which is not the caller's."""
    who = getattr(channel, "approver", "") or PERSON
    signed = replace(answer, channel=answer.channel or channel.name, approver=answer.approver or answer.by or who)
    return signed if answer.by else replace(signed, by=f"{who} via {channel.name}")


def client_answer(request: Request, prior: PriorAnswer) -> Answer:
    """The answer that the client brought with a repeated request. Raises NoAnswer."""
    answer: Answer = prior.read(request)
    if not prior.channel:
        return answer
    signed = replace(answer, channel=prior.channel, approver=answer.approver or request.principal.user)
    return signed if answer.by else replace(signed, by=f"{user_of(request)} via {prior.channel}")


def prior_answer(approval: PendingApproval, binding: str) -> PriorAnswer:
    """The stored answer to a pending approval."""

    def read(request: Request) -> Answer:
        if approval.answer is None:
            raise NoAnswer("nobody has answered yet")
        return pending.read_answer(request, approval.answer)

    return PriorAnswer(binding=binding, question=approval.id, asked=approval.asked, read=read)
