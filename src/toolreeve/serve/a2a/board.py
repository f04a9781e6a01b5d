"""Stored A2A tasks: each change is a numbered event.

Streams and webhooks follow the events.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

from toolreeve.record.tasks import TaskRow, TaskTable
from toolreeve.serve.a2a.files import without_content

POLL_SECONDS = 1.0
"""How often a stream looks for events of other processes."""
SEQUENCE = "sequence"
ENDED = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
Published = Callable[[TaskRow], Any]


class TaskBoard:
    """`published` is awaited after each change."""

    def __init__(self, table: TaskTable, now: Callable[[], float]) -> None:
        self.table = table
        self.now = now
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self.published: Published | None = None

    async def add(
        self, number: str, message: Message, *, owner: str, turn: Mapping[str, Any], process: str
    ) -> TaskRow | None:
        """A new task that is worked on; None if there is one with this number."""
        task = Task(id=number, context_id=message.context_id)
        task.history.append(stored_message(message))
        task.history[0].task_id, task.history[0].context_id = task.id, task.context_id
        now = self.now()
        _set_status(task, TaskState.TASK_STATE_WORKING, None, now)
        row = TaskRow(
            id=task.id,
            owner=owner,
            context=task.context_id,
            state=TaskState.Name(task.status.state),
            body=task.SerializeToString(),
            turn=turn,
            process=process,
            created=now,
            changed=now,
        )
        return row if await self.table.add(row, ()) else None

    async def publish(
        self,
        row: TaskRow,
        state: TaskState | None = None,
        *,
        parts: Sequence[Part] = (),
        artifact: Artifact | None = None,
        said: Message | None = None,
        metadata: Mapping[str, Any] = MappingProxyType({}),
        **changes: Any,
    ) -> TaskRow | None:
        """Store a change as events: an artifact, a state, or both. None if somebody else changed it meanwhile."""
        now = self.now()
        task = read_task(row)
        if said is not None:
            task.history.append(stored_message(said))
        events = []
        if artifact is not None:
            task.artifacts.append(artifact)
            update = TaskArtifactUpdateEvent(
                task_id=task.id, context_id=task.context_id, artifact=artifact, last_chunk=True
            )
            events.append(StreamResponse(artifact_update=update))
        if state is not None:
            message = new_message(task, parts) if parts else None
            _set_status(task, state, message, now)
            status = TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=task.status)
            events.append(StreamResponse(status_update=status))
        made = replace(
            row,
            state=TaskState.Name(task.status.state),
            body=task.SerializeToString(),
            last=row.last + len(events),
            ended=task.status.state in ENDED,
            changed=now,
            **changes,
        )
        if not await self.table.save(made, _encode(events, row.last, metadata), after=row.last):
            return None
        await self._announce(made)
        return made

    async def follow(self, number: str, after: int) -> AsyncGenerator[StreamResponse, None]:
        """The events of a task after one of them, as they come; until the task has ended."""
        with self._waiting(number) as changed:
            while True:
                changed.clear()
                found = await self.table.events(number, after=after)
                for seq, body in found:
                    event = StreamResponse.FromString(body)
                    after = seq
                    yield event
                    if event.HasField("status_update") and event.status_update.status.state in ENDED:
                        return
                if not found:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(changed.wait(), POLL_SECONDS)

    @contextlib.contextmanager
    def _waiting(self, number: str) -> Any:
        changed = asyncio.Event()
        waiters = self._waiters.setdefault(number, set())
        waiters.add(changed)
        try:
            yield changed
        finally:
            waiters.discard(changed)
            if not waiters:
                self._waiters.pop(number, None)

    async def _announce(self, row: TaskRow) -> None:
        for waiter in self._waiters.get(row.id, ()):
            waiter.set()
        if self.published is not None:
            await self.published(row)


def read_task(row: TaskRow) -> Task:
    task: Task = Task.FromString(row.body)
    return task


def stored_message(message: Message) -> Message:
    stored = Message()
    stored.CopyFrom(message)
    del stored.parts[:]
    stored.parts.extend(without_content(message.parts))
    return stored


def new_message(task: Task, parts: Sequence[Part]) -> Message:
    return Message(
        message_id=str(uuid.uuid4()), task_id=task.id, context_id=task.context_id, role=Role.ROLE_AGENT, parts=parts
    )


def event_of(response: StreamResponse) -> Any:
    return getattr(response, str(response.WhichOneof("payload")))


def _encode(events: Sequence[StreamResponse], last: int, metadata: Mapping[str, Any]) -> list[bytes]:
    for number, event in enumerate(events, last + 1):
        event_of(event).metadata.update({SEQUENCE: number, **metadata})
    return [event.SerializeToString() for event in events]


def _set_status(task: Task, state: TaskState, message: Message | None, now: float) -> None:
    """What was said with the last state becomes history."""
    if task.status.HasField("message"):
        task.history.append(task.status.message)
    status = TaskStatus(state=state)
    if message is not None:
        status.message.CopyFrom(message)
    status.timestamp.FromMilliseconds(int(now * 1000))
    task.status.CopyFrom(status)
