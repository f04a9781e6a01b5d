"""One turn of an agent, merged from its updates.

Shaped like the draft of version 2: a tool call is one record that later updates complete. Unknown updates are ignored;
known ones are bounded, so that an agent cannot fill our memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_TEXT = 8_000_000
"""Characters of text, thoughts and tool calls that one turn may send."""
MAX_CALLS = 5_000


class Flood(Exception):
    """The agent sends more than a turn may hold."""


@dataclass(slots=True)
class AgentTurn:
    """`calls` are the tool calls by id, each with the latest value of every field. `stop` is empty until the turn has
    ended: end_turn, max_tokens, max_turn_requests, refusal or cancelled. `refusals` says why permissions
    were refused."""

    text: str = ""
    thoughts: str = ""
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    plan: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    mode: str = ""
    stop: str = ""
    refusals: list[str] = field(default_factory=list)
    _size: int = 0

    def apply(self, update: Mapping[str, Any]) -> None:
        """Raises Flood."""
        kind = update.get("sessionUpdate")
        match kind:
            case "agent_message_chunk":
                self.text += self._count(_text_of(update.get("content")))
            case "agent_thought_chunk":
                self.thoughts += self._count(_text_of(update.get("content")))
            case "tool_call" | "tool_call_update":
                self.merge_call(update)
            case "plan" if isinstance(entries := update.get("entries"), list):
                self.plan = [each for each in entries if isinstance(each, dict)]
            case "usage_update":
                self.usage = {name: value for name, value in update.items() if name != "sessionUpdate"}
            case "current_mode_update" if isinstance(mode := update.get("currentModeId"), str):
                self.mode = mode

    def merge_call(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The call with these fields, which replace earlier ones; null leaves them as they are. Raises Flood."""
        number = str(fields.get("toolCallId", ""))
        known = self.calls.setdefault(number, {})
        if len(self.calls) > MAX_CALLS:
            raise Flood(f"more than {MAX_CALLS:,} tool calls in one turn")
        self._count(str(fields))
        known.update((name, value) for name, value in fields.items() if value is not None and name != "sessionUpdate")
        return known

    def _count(self, text: str) -> str:
        self._size += len(text)
        if self._size > MAX_TEXT:
            raise Flood(f"more than {MAX_TEXT:,} characters in one turn")
        return text


def _text_of(content: Any) -> str:
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""
