"""Conversation of one run, kept below the model's context limit.

Compaction replaces the text of old tool results. The question, what the model said, its calls and the recent results
stay.
"""

from collections.abc import Iterable
from dataclasses import replace

from toolreeve.agent.messages import AssistantMessage, Message, ToolAnswer, ToolMessage, UserMessage
from toolreeve.core import json

CHARACTERS_PER_TOKEN = 3.5
"""Fewer than in plain English prose: code and JSON have more tokens."""
KEPT_TURNS = 2
SHORT_ANSWER = 400
FILL = 0.8


class Conversation:
    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages: list[Message] = list(messages)

    def add(self, message: Message) -> None:
        self.messages.append(message)

    def tokens(self) -> int:
        """An estimate."""
        return round(sum(map(_length, self.messages)) / CHARACTERS_PER_TOKEN)

    def compact(self, limit: int) -> int:
        """Shorten old results until the conversation fits below the limit of tokens. Returns how many it shortened."""
        shortened = 0
        results = [index for index, each in enumerate(self.messages) if isinstance(each, ToolMessage)]
        for index in results[: -KEPT_TURNS or None]:
            if self.tokens() <= limit * FILL:
                break
            shortened += self._shorten(index)
        return shortened

    def _shorten(self, index: int) -> int:
        message = self.messages[index]
        assert isinstance(message, ToolMessage)  # noqa: S101 - chosen by type
        answers = tuple(map(_removed, message.answers))
        self.messages[index] = ToolMessage(answers=answers)
        return sum(new is not old for new, old in zip(answers, message.answers, strict=True))


def _removed(answer: ToolAnswer) -> ToolAnswer:
    if len(answer.text) <= SHORT_ANSWER:
        return answer
    start = answer.text[: SHORT_ANSWER // 2]
    note = f"[{len(answer.text):,} characters; the rest was removed to save space. Repeat the call if it is needed.]"
    return replace(answer, text=f"{start}\n{note}")


def _length(message: Message) -> int:
    match message:
        case UserMessage(text=text):
            return len(text)
        case AssistantMessage(text=text, calls=calls):
            return len(text) + sum(len(call.name) + len(json.dumps(call.args)) for call in calls)
        case ToolMessage(answers=answers):
            return sum(len(answer.text) for answer in answers)
