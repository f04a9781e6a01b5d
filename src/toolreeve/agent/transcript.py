"""Transcript of a run in the record, to read and resume.

Messages are stored before the next turn of the model. A call that a dead process left unanswered is never repeated: the
model is told that its outcome is unknown.
"""

from collections.abc import Callable, Sequence
from typing import Any

from toolreeve.agent.loop import Outcome
from toolreeve.agent.messages import AssistantMessage, Message, ToolAnswer, ToolMessage, from_dict, to_dict
from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.agent_runs import AgentRunRow, AgentRunTable

UNKNOWN = (
    "Error: the run was interrupted during this call. Whether it took effect is not known: check before repeating it."
)


class Transcript:
    """`stored` is the number of messages that are in the record already. `redact` removes secrets from text."""

    def __init__(
        self,
        table: AgentRunTable,
        row: AgentRunRow,
        *,
        redact: Callable[[str], str],
        now: Callable[[], float],
        stored: int = 0,
    ) -> None:
        self._table = table
        self._row = row
        self._redact = redact
        self._now = now
        self._stored = stored

    async def begin(self) -> None:
        await self._table.begin(self._row)

    async def keep(self, messages: Sequence[Message]) -> None:
        """Store what is new. Stored messages are not rewritten when the conversation is shortened."""
        new = [self._encode(message) for message in messages[self._stored :]]
        if new:
            await self._table.add_messages(self._row.id, self._stored, new)
            self._stored += len(new)

    async def end(self, outcome: Outcome) -> None:
        await self._table.end(
            self._row.id, ended=self._now(), stop=str(outcome.stop), steps=outcome.steps, cost=outcome.cost
        )

    def _encode(self, message: Message) -> bytes:
        data = to_dict(message) | {"at": self._now()}
        if isinstance(message, AssistantMessage) and message.raw is not None:
            data |= {"provider": message.provider, "raw": message.raw}
        return json.dumps(self._redacted(data))

    def _redacted(self, value: Any) -> Any:
        """Redacts texts one by one, so that the document stays JSON."""
        match value:
            case str():
                return self._redact(value)
            case dict():
                return {self._redact(key): self._redacted(item) for key, item in value.items()}
            case list() | tuple():
                return [self._redacted(item) for item in value]
            case _:
                return value


async def find_run(table: AgentRunTable, user: str, prefix: str) -> AgentRunRow:
    """The one run whose id begins so. Raises ToolError."""
    found = await table.find(user, prefix)
    if not found:
        raise ToolError(
            ErrorCode.TOOL_NOT_FOUND, f"no agent run begins with {prefix!r}; toolreeve agent list shows them"
        )
    if len(found) > 1:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"several agent runs begin with {prefix!r}: give more of the id")
    return found[0]


async def load_messages(table: AgentRunTable, run: str) -> list[Message]:
    """The conversation, complete: calls without an answer are answered with what is known."""
    messages = [_decode(json.loads(body)) for body in await table.messages(run)]
    last = messages[-1] if messages else None
    if isinstance(last, AssistantMessage) and last.calls:
        answers = (ToolAnswer(id=call.id, name=call.name, text=UNKNOWN, is_error=True) for call in last.calls)
        messages.append(ToolMessage(answers=tuple(answers)))
    return messages


def _decode(data: dict[str, Any]) -> Message:
    message = from_dict(data)
    if isinstance(message, AssistantMessage) and "raw" in data:
        return AssistantMessage(text=message.text, calls=message.calls, provider=data["provider"], raw=data["raw"])
    return message
