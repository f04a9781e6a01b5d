"""A2A turns: a task's calls on the road, parked for approvals.

A turn ends at its first failure. At a question the task is stored with it, and nothing waits in memory: whoever decides
it, here or elsewhere, before or after a restart, the call is made again and uses the answer once. A call that a dead
process had begun is never repeated.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from a2a.types import Message, Part, TaskState
from a2a.utils.errors import InternalError

from toolreeve.approval.request import Request
from toolreeve.core.call import Principal, Role, ToolCall, new_id
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.peer import DEFERRED, Deferred
from toolreeve.core.result import Failed, ToolResult
from toolreeve.record.pending_table import EXPIRED, PENDING, WITHDRAWN
from toolreeve.record.tasks import KEPT, TaskQuery, TaskRow
from toolreeve.serve.a2a.board import TaskBoard
from toolreeve.serve.a2a.development import CONFIRMATION, UPDATE, CallLife
from toolreeve.serve.a2a.parts import data_part, describe_question, new_artifact, state_of

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

MAX_RUNNING = 256
MAX_ATTEMPTS = 20
"""How often a change is tried again because somebody else changed the task meanwhile."""
_logger = logging.getLogger(__name__)


class TaskPeer:
    """The agent that called. Its questions are stored; the task waits, the call does not. `show` gets the questions of
    calls inside the call, which waits for them."""

    wants_progress = False
    can_ask = True
    defers = True
    decision = None

    def __init__(self, session: str, credential: str, show: Callable[[str], Awaitable[None]]) -> None:
        self.session = session
        self.credential = credential
        self.question = ""
        self._show = show

    async def ask(self, request: Request) -> Deferred:
        self.question = request.id
        return DEFERRED

    async def show_nested(self, request: Request) -> None:
        await self._show(request.id)

    async def progress(self, text: str) -> None:
        """Not wanted."""


class Turns:
    """`is_valid` says whether the credential with this id is still accepted."""

    def __init__(self, reeve: "Toolreeve", board: TaskBoard, is_valid: Callable[[str], bool]) -> None:
        self._reeve = reeve
        self._board = board
        self.is_valid = is_valid
        self._running: dict[str, asyncio.Task[None]] = {}
        self._nested: dict[str, asyncio.Event] = {}
        self._owners: Counter[str] = Counter()
        self._asked_inside: dict[str, str] = {}  # the task of each question of a call inside its call

    def check_room(self, owner: str) -> None:
        """Raises InternalError."""
        limit = self._reeve.configuration.settings.a2a.tasks_per_user
        if self._owners[owner] >= limit:
            raise InternalError(message=f"{limit} tasks of this user run already (a2a.tasks_per_user); try again later")
        if len(self._running) >= MAX_RUNNING:
            raise InternalError(message=f"{MAX_RUNNING} tasks run already; try again later")

    def start(self, row: TaskRow) -> None:
        task = asyncio.create_task(self._run(row))
        self._owners[row.owner] += 1
        self._running[row.id] = task
        task.add_done_callback(lambda ended: self._forget(row, ended))

    def _forget(self, row: TaskRow, ended: "asyncio.Task[None]") -> None:
        self._owners[row.owner] -= 1
        self._owners += Counter()  # drops those without tasks
        if self._running.get(row.id) is ended:
            del self._running[row.id]
            self._nested.pop(row.id, None)
        if not ended.cancelled() and (problem := ended.exception()) is not None:
            _logger.error("task %s: its turn failed", row.id, exc_info=problem)

    async def wait(self, number: str) -> None:
        """Until the turn has ended or asks something."""
        if (task := self._running.get(number)) is None:
            return
        asks = asyncio.create_task(self._nested.setdefault(number, asyncio.Event()).wait())
        try:
            await asyncio.wait({task, asks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asks.cancel()

    async def resume(self, row: TaskRow) -> None:
        """Continue a task whose question is settled. Does nothing if it is not, or if somebody else does."""
        if row.turn.get("nested"):
            await self._resume_nested(row)
            return
        state = await self._state_of(row.question)
        if state == PENDING:
            return
        if state in (EXPIRED, WITHDRAWN):
            await self._end(row, TaskState.TASK_STATE_CANCELED, f"the question {row.question} has {_ENDS[state]}")
        elif not self.is_valid(row.turn["credential"]):
            await self._end(row, TaskState.TASK_STATE_FAILED, "the credential of this task is no longer accepted")
        else:
            process = self._reeve.internals.journal.process
            turn = {**row.turn, "call": new_id()}
            taken = await self._board.publish(
                row, TaskState.TASK_STATE_WORKING, question="", process=process, turn=turn
            )
            if taken is not None:
                self.start(taken)

    async def _state_of(self, question: str) -> str:
        found = await self._reeve.approvals.store.find(question)
        return WITHDRAWN if found is None else found.state

    async def _show_nested(self, number: str, question: str) -> None:
        """The task asks a question of a call inside its call, which waits; there may be several."""
        self._asked_inside[question] = number
        for _ in range(MAX_ATTEMPTS):
            row = await self._board.table.find(number)
            if row is None or row.ended:
                return
            if await self._park(row, [*row.turn.get("nested", ()), question], nested=True) is not None:
                self._nested.setdefault(number, asyncio.Event()).set()
                return

    async def _resume_nested(self, row: TaskRow, *, ended: bool = False) -> None:
        """The call goes on by itself; what is still asked is shown on, unless the call has ended. One that a dead
        process had begun is not repeated."""
        if row.id not in self._running:
            if not await self._reeve.internals.journal.is_alive(row.process):
                await self._end(row, TaskState.TASK_STATE_FAILED, _LOST.format(call=row.turn["call"]))
            return
        asked = row.turn["nested"]
        left = [] if ended else [each for each in asked if await self._state_of(each) == PENDING]
        if left == asked:
            return
        for each in set(asked) - set(left):
            self._asked_inside.pop(each, None)
        if left:
            await self._park(row, left, nested=True)
            return
        self._nested.setdefault(row.id, asyncio.Event()).clear()
        turn = {**row.turn, "nested": []}
        await self._board.publish(row, TaskState.TASK_STATE_WORKING, question="", turn=turn)

    async def cancel(self, row: TaskRow) -> TaskRow | None:
        """None if it changed meanwhile. Its question is withdrawn, and its call is stopped."""
        parts = [Part(text="canceled by its caller")]
        done = await self._board.publish(row, TaskState.TASK_STATE_CANCELED, parts=parts, question="", process="")
        if done is not None:
            await self._withdraw(row)
        if done is not None and (not row.question or row.turn.get("nested")):
            self._reeve.cancel(row.turn["call"])
        return done

    async def recover(self) -> int:
        """Continue what was answered while nobody ran here, and end what a dead process had begun. Returns the last
        change of a question that is accounted for."""
        since = await self._reeve.approvals.store.last_change()
        now = self._board.now()
        await self._board.table.sweep(before=now - KEPT)
        for row in await self._board.table.unended():
            if row.question and not row.turn.get("nested"):
                await self.resume(row)
            elif (
                row.process != self._reeve.internals.journal.process
                and not await self._reeve.internals.journal.is_alive(row.process)
            ):
                await self._end(row, TaskState.TASK_STATE_FAILED, _LOST.format(call=row.turn["call"]))
                await self._withdraw(row)
        return since

    async def follow_answers(self, since: int) -> None:
        """Resume tasks as their questions are settled after the change `since`, in whatever process."""
        async with aclosing(self._reeve.approvals.changes(since)) as changes:
            async for change in changes:
                if change.state == PENDING:
                    continue
                try:
                    inside = await self._board.table.find(self._asked_inside.get(change.id, ""))
                    for row in [inside] if inside else await self._board.table.waiting_for(change.id):
                        await self.resume(row)
                except ToolError:
                    _logger.warning("the task of question %s cannot be continued just now", change.id)

    async def close(self) -> None:
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, row: TaskRow) -> None:
        current: TaskRow | None = row
        while current is not None and not current.ended and not current.question:
            life = CallLife(current.turn)
            if life.is_told:
                state = TaskState.TASK_STATE_WORKING
                told = await self._board.publish(current, state, parts=life.executing(), metadata=life.metadata(UPDATE))
                if told is None:
                    return
                current = told
            requested = current.turn["calls"][current.turn["next"]]
            show = partial(self._show_nested, current.id)
            peer = TaskPeer(current.turn["session"], current.turn["credential"], show)
            result = await self._reeve.run(_new_call(current, requested, peer))
            current = await self._settle_latest(current, requested["id"], result, peer.question)

    async def _settle_latest(self, row: TaskRow, number: str, result: ToolResult, question: str) -> TaskRow | None:
        """Questions inside the call changed the task; the last of them may just be settled."""
        for _ in range(MAX_ATTEMPTS):
            found = await self._board.table.find(row.id)
            if found is None or found.ended:
                return None
            if found.question:
                await self._resume_nested(found, ended=True)
                continue
            settled = await self._settle(found, number, result, question)
            if settled is not None:
                return settled
        return None

    async def _settle(self, row: TaskRow, number: str, result: ToolResult, question: str) -> TaskRow | None:
        if isinstance(result, Failed) and result.error.code is ErrorCode.APPROVAL_PENDING and question:
            return await self._park(row, [question])
        place = row.turn["next"] + 1
        life = CallLife(row.turn)
        changes: dict[str, Any] = {"turn": {**row.turn, "next": place, "call": new_id()}}
        changes |= {"artifact": new_artifact(number, result), "metadata": life.metadata(UPDATE)}
        parts = life.ended(result)
        if isinstance(result, Failed):
            return await self._end(row, state_of(result), self._failure(row, result), *parts, **changes)
        if place == len(row.turn["calls"]):
            return await self._board.publish(row, state_of(result), parts=parts, process="", **changes)
        state = TaskState.TASK_STATE_WORKING if life.is_told else None
        return await self._board.publish(row, state, parts=parts, **changes)

    def _failure(self, row: TaskRow, result: Failed) -> str:
        left = len(row.turn["calls"]) - row.turn["next"] - 1
        rest = f" The {left} calls after it were not made." if left else ""
        return f"{result.error.message}{rest}"

    async def _park(self, row: TaskRow, questions: list[str], *, nested: bool = False) -> TaskRow | None:
        """Wait for the answer to a question; if `nested`, to several at once."""
        changes: dict[str, Any] = {"question": questions[0]}
        if nested:
            changes["turn"] = {**row.turn, "nested": questions}
        else:
            changes["process"] = ""
            if problem := await self._too_many_wait(row.owner):
                await self._withdraw(replace(row, question=questions[0]))
                return await self._end(row, TaskState.TASK_STATE_FAILED, problem)
        described = await self.describe(questions)
        life = CallLife(row.turn)
        parts = [*_asking(described), *life.asking(described[0])]
        state = TaskState.TASK_STATE_INPUT_REQUIRED
        parked = await self._board.publish(row, state, parts=parts, metadata=life.metadata(CONFIRMATION), **changes)
        if parked is None:
            if not nested:
                await self._withdraw(replace(row, question=questions[0]))
            return None
        await self.resume(parked)  # somebody may have decided it already
        return parked

    async def _too_many_wait(self, owner: str) -> str:
        limit = self._reeve.configuration.settings.a2a.waiting_tasks_per_user
        state = TaskState.Name(TaskState.TASK_STATE_INPUT_REQUIRED)
        _, waiting = await self._board.table.page(TaskQuery(owner=owner, state=state, limit=1))
        if waiting < limit:
            return ""
        return f"{limit} tasks of this user wait for an answer already (a2a.waiting_tasks_per_user)"

    async def describe(self, questions: Sequence[str]) -> list[dict[str, Any]]:
        """The questions as an agent reads them."""
        cards = [await self._reeve.approvals.show(each) for each in questions]
        return [{} if card is None else describe_question(card) for card in cards]

    async def _withdraw(self, row: TaskRow) -> None:
        """Its questions, unless another task waits for the same."""
        for question in {row.question, *row.turn.get("nested", ())} - {""}:
            if not await self._board.table.waiting_for(question):
                await self._reeve.approvals.store.withdraw(question)

    async def _end(self, row: TaskRow, state: TaskState, text: str, *more: Part, **changes: Any) -> TaskRow | None:
        parts = [Part(text=text), *more]
        return await self._board.publish(row, state, parts=parts, question="", process="", **changes)

    async def ask_again(self, row: TaskRow, said: Message) -> TaskRow | None:
        """The answer was neither yes nor no."""
        described = await self.describe(questions_of(row))
        text = f"That was neither yes nor no. {described[0].get('prompt', '')} Answer allow_once or reject_once."
        parts = [Part(text=text), *_asking(described)[1:]]
        return await self._board.publish(row, TaskState.TASK_STATE_INPUT_REQUIRED, parts=parts, said=said)


def questions_of(row: TaskRow) -> list[str]:
    """What a task waits for, the first question first."""
    return list(row.turn.get("nested") or [row.question])


def _asking(described: Sequence[dict[str, Any]]) -> list[Part]:
    prompts = [str(each.get("prompt", "")) for each in described]
    return [Part(text="\n".join(prompts)), *(data_part({"input_required": each}) for each in described)]


_ENDS = {EXPIRED: "expired", WITHDRAWN: "been withdrawn"}
_LOST = "the server stopped while the call {call} ran: it may have taken effect, and is not repeated"


def _new_call(row: TaskRow, requested: dict[str, Any], peer: TaskPeer) -> ToolCall:
    turn = row.turn
    return ToolCall(
        id=turn["call"],
        tool=requested["tool"],
        args=requested["args"],
        session=turn["session"],
        principal=Principal(user=turn["user"], role=Role(turn["role"])),
        origin="a2a",
        client=turn["client"],
        peer=peer,
    )
