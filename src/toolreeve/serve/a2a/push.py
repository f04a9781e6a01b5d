"""Push notifications of A2A tasks, through the webhooks' durable outbox.

A configuration is a webhook of its own. Events become deliveries with the cursor of the task, in one transaction: none
is lost or doubled. They are signed with the token of the configuration.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from a2a.types import StreamResponse, TaskPushNotificationConfig
from a2a.utils.errors import InvalidParamsError
from google.protobuf.json_format import MessageToDict

from toolreeve.core import json
from toolreeve.core.errors import ToolError
from toolreeve.record.tasks import TaskRow
from toolreeve.record.webhooks import NewDelivery, Webhook
from toolreeve.serve.a2a.board import TaskBoard

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

MAX_CONFIGS = 10
PREFIX = "a2a-"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SCHEME = re.compile(r"[A-Za-z0-9-]{1,40}")


class PushConfigs:
    def __init__(self, reeve: "Toolreeve", board: TaskBoard) -> None:
        self._reeve = reeve
        self._board = board
        self._tasks: set[str] = set()

    async def load(self) -> None:
        """Find the tasks that have configurations, and deliver what is overdue."""
        hooks = [hook for hook in await self._reeve.internals.store.webhooks.list() if hook.task.startswith(PREFIX)]
        self._tasks = {hook.task.removeprefix(PREFIX) for hook in hooks}
        for number in sorted(self._tasks):
            if (row := await self._board.table.find(number)) is not None:
                await self.deliver(row)
            else:
                await self._forget(number)

    async def add(self, row: TaskRow, config: TaskPushNotificationConfig) -> TaskPushNotificationConfig:
        """Raises InvalidParamsError, also for an address that the network guard refuses."""
        number = config.id or secrets.token_hex(6)
        if not _ID.fullmatch(number):
            raise InvalidParamsError(message="the id of a push configuration has letters, digits and ._- only")
        known = {hook.id for hook in await self._hooks(row)}
        if len(known) >= MAX_CONFIGS and _hook_id(row, number) not in known:
            raise InvalidParamsError(message=f"a task has at most {MAX_CONFIGS} push configurations")
        try:
            self._reeve.internals.http.screen(config.url, "POST")
        except ToolError as problem:
            raise InvalidParamsError(message=f"the address is refused: {problem.message}") from None
        hook = Webhook(
            id=_hook_id(row, number),
            url=config.url,
            secret=config.token or secrets.token_urlsafe(32),
            task=f"{PREFIX}{row.id}",
            headers=_headers(config),
        )
        now = self._board.now()
        if await self._reeve.internals.store.webhooks.cursor(hook.task) is None:
            await self._reeve.internals.store.webhooks.enqueue(
                hook.task, before=None, after=row.last, deliveries=(), now=now
            )
        await self._reeve.internals.store.webhooks.put(hook, now=now)
        self._tasks.add(row.id)
        return _shown(row, hook)

    async def list(self, row: TaskRow) -> list[TaskPushNotificationConfig]:
        return [_shown(row, hook) for hook in await self._hooks(row)]

    async def find(self, row: TaskRow, number: str) -> TaskPushNotificationConfig | None:
        return next((each for each in await self.list(row) if each.id == number), None)

    async def delete(self, row: TaskRow, number: str) -> bool:
        return await self._reeve.internals.store.webhooks.delete(_hook_id(row, number))

    async def deliver(self, row: TaskRow) -> None:
        """Put the events that are not yet delivered into the outbox."""
        if row.id not in self._tasks:
            return
        source = f"{PREFIX}{row.id}"
        hooks = await self._hooks(row)
        cursor = await self._reeve.internals.store.webhooks.cursor(source) or 0
        events = await self._board.table.events(row.id, after=cursor)
        if not events:
            return
        rows = [_delivery(hook, row, seq, body) for seq, body in events for hook in hooks]
        now = self._board.now()
        await self._reeve.internals.store.webhooks.enqueue(
            source, before=cursor, after=events[-1][0], deliveries=rows, now=now
        )

    async def sweep(self) -> None:
        """Remove the configurations of ended tasks once everything is delivered."""
        statistics = await self._reeve.internals.store.webhooks.statistics()
        for number in sorted(self._tasks):
            row = await self._board.table.find(number)
            waits = await self._hooks(row) if row is not None else ()
            open_ = [each for hook in waits if (each := statistics.get(hook.id)) and (each.pending or each.dead)]
            if row is None or (row.ended and not open_):
                await self._forget(number)

    async def _forget(self, number: str) -> None:
        for hook in await self._reeve.internals.store.webhooks.list():
            if hook.task == f"{PREFIX}{number}":
                await self._reeve.internals.store.webhooks.delete(hook.id)
        self._tasks.discard(number)

    async def _hooks(self, row: TaskRow) -> Sequence[Webhook]:
        return [hook for hook in await self._reeve.internals.store.webhooks.list() if hook.task == f"{PREFIX}{row.id}"]


def _hook_id(row: TaskRow, number: str) -> str:
    return f"{PREFIX}{row.id}-{number}"


def _headers(config: TaskPushNotificationConfig) -> Mapping[str, str]:
    headers = {"x-a2a-notification-token": config.token} if config.token else {}
    if config.HasField("authentication"):
        given = config.authentication
        if not _SCHEME.fullmatch(given.scheme):
            raise InvalidParamsError(message="authentication.scheme must be one word, such as Bearer")
        headers["authorization"] = f"{given.scheme} {given.credentials}"
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise InvalidParamsError(message="token and credentials must be visible ASCII characters")
    return headers


def _shown(row: TaskRow, hook: Webhook) -> TaskPushNotificationConfig:
    """Without the token and the credentials."""
    number = hook.id.removeprefix(f"{PREFIX}{row.id}-")
    return TaskPushNotificationConfig(id=number, task_id=row.id, url=hook.url)


def _delivery(hook: Webhook, row: TaskRow, seq: int, body: bytes) -> NewDelivery:
    content = json.dumps(MessageToDict(StreamResponse.FromString(body)))
    return NewDelivery(hook.id, f"{row.id}-{seq}", hook.task, content)
