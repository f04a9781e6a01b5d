"""Channel: a way to ask a person for an approval.

The broker asks all available channels at once and takes the first answer.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from toolreeve.approval.request import Answer, Request

JudgeEdit = Callable[[Request, Mapping[str, Any]], Awaitable[Request]]
"""The question about a call with edited arguments. Raises ToolError if they are not valid, or denied."""


@runtime_checkable
class Channel(Protocol):
    """`ask` is cancelled when another channel answers first or time runs out; it must then withdraw its question."""

    @property
    def name(self) -> str: ...

    def available(self) -> bool:
        """Whether a person can be reached on this channel now."""
        ...

    async def ask(self, request: Request) -> Answer: ...


@runtime_checkable
class EditingChannel(Protocol):
    """A channel on which arguments are edited; the runtime sets how they are judged."""

    judge_edit: JudgeEdit | None


@runtime_checkable
class Announcer(Protocol):
    """A channel that only tells people of a question; it is answered elsewhere."""

    @property
    def announces(self) -> bool: ...

    async def announce(self, request: Request) -> None: ...
