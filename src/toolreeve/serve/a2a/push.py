"""Push notifications of A2A tasks, through the webhooks' durable outbox.

A configuration is a webhook of its own. Events become deliveries with the cursor of the task, in one transaction: none
is lost or doubled. They are signed with the token of the configuration.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from a2a.types import StreamResponse
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from google.protobuf.json_format import MessageToDict

from toolreeve.core import json
from toolreeve.core.errors import ToolError
from toolreeve.record.tasks import TaskRow
from toolreeve.record.webhooks import NewDelivery, Webhook
from toolreeve.serve.a2a.board import TaskBoard
from toolreeve.serve.a2a.push_settings import PushSettings, kind_of

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

MAX_CONFIGS = 10
PREFIX = "a2a-"


class PushConfigs:
    def __init__(self, reeve: "Toolreeve", board: TaskBoard) -> None:
        self._http = reeve.internals.http
        self._table = reeve.internals.store.webhooks
        self._board = board
        self._tasks: set[str] = set()

    async def load(self) -> None:
        """Find the tasks that have configurations, and deliver what is overdue."""
        hooks = [hook for hook in await self._table.list() if hook.task.startswith(PREFIX)]
        self._tasks = {hook.task.removeprefix(PREFIX) for hook in hooks}
        for number in sorted(self._tasks):
            if (row := await self._board.table.find(number)) is not None:
                await self.deliver(row)
            else:
                await self._forget(number)

    async def add(self, row: TaskRow, settings: PushSettings) -> Webhook:
        """Raises InvalidParamsError, also for an address that the network guard refuses."""
        number = settings.id or secrets.token_hex(6)
        known = {hook.id for hook in await self.hooks(row)}
        if len(known) >= MAX_CONFIGS and _hook_id(row, number) not in known:
            raise InvalidParamsError(message=f"a task has at most {MAX_CONFIGS} push configurations")
        try:
            self._http.screen(settings.url, "POST")
        except ToolError as problem:
            raise InvalidParamsError(message=f"the address is refused: {problem.message}") from None
        hook = replace(settings.to_webhook(), id=_hook_id(row, number), task=f"{PREFIX}{row.id}")
        now = self._board.now()
        if await self._table.cursor(hook.task) is None:
            await self._table.enqueue(hook.task, before=None, after=row.last, deliveries=(), now=now)
        await self._table.put(hook, now=now)
        self._tasks.add(row.id)
        return hook

    async def find(self, row: TaskRow, number: str) -> Webhook:
        """Raises TaskNotFoundError."""
        found = next((hook for hook in await self.hooks(row) if hook.id == _hook_id(row, number)), None)
        if found is None:
            raise TaskNotFoundError(message=f"the task has no push configuration {number!r:.80}")
        return found

    async def delete(self, row: TaskRow, number: str) -> None:
        await self._table.delete(_hook_id(row, number))

    async def deliver(self, row: TaskRow) -> None:
        """Put the events that are not yet delivered into the outbox."""
        if row.id not in self._tasks:
            return
        source = f"{PREFIX}{row.id}"
        hooks = await self.hooks(row)
        while True:
            cursor = await self._table.cursor(source) or 0
            events = await self._board.table.events(row.id, after=cursor)
            if not events:
                return
            rows = [each for seq, body in events for each in _deliveries(hooks, row, seq, body)]
            now = self._board.now()
            await self._table.enqueue(source, before=cursor, after=events[-1][0], deliveries=rows, now=now)

    async def sweep(self) -> None:
        """Remove the configurations of ended tasks once everything is delivered; find those of other processes."""
        await self.load()
        statistics = await self._table.statistics()
        for number in sorted(self._tasks):
            row = await self._board.table.find(number)
            waits = await self.hooks(row) if row is not None else ()
            open_ = [each for hook in waits if (each := statistics.get(hook.id)) and (each.pending or each.dead)]
            if row is None or (row.ended and not open_):
                await self._forget(number)

    async def _forget(self, number: str) -> None:
        for hook in await self._table.list():
            if hook.task == f"{PREFIX}{number}":
                await self._table.delete(hook.id)
        self._tasks.discard(number)

    async def hooks(self, row: TaskRow) -> Sequence[Webhook]:
        return [hook for hook in await self._table.list() if hook.task == f"{PREFIX}{row.id}"]


def _hook_id(row: TaskRow, number: str) -> str:
    return f"{PREFIX}{row.id}-{number}"


def number_of(row: TaskRow, hook: Webhook) -> str:
    """The id of the configuration, as its caller knows it."""
    return hook.id.removeprefix(_hook_id(row, ""))


def _deliveries(hooks: Sequence[Webhook], row: TaskRow, seq: int, body: bytes) -> list[NewDelivery]:
    response = StreamResponse.FromString(body)
    kind = kind_of(response)
    content = json.dumps(MessageToDict(response))
    return [
        NewDelivery(hook.id, f"{row.id}-{seq}", hook.task, content) for hook in hooks if hook.wants(kind, hook.task)
    ]
