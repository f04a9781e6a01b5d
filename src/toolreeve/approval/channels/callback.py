"""Approval channel that calls a function of the embedding program.

Only True or a granting Answer is an approval; no other truthy value is.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from toolreeve.approval.request import Answer, Request
from toolreeve.core.threads import run_interruptibly

Approve = Callable[[Request], Any | Awaitable[Any]]


class CallbackChannel:
    """`approve(request)` is a coroutine function, or a plain function, which runs in a thread and may block."""

    def __init__(self, approve: Approve, *, name: str = "callback") -> None:
        self.name = name
        self._approve = approve

    def available(self) -> bool:
        return True

    async def ask(self, request: Request) -> Answer:
        answer = await self._call(request)
        if isinstance(answer, Answer):  # the caller did not answer: who did is for the function to say
            return replace(answer, digest=answer.digest or request.digest, by=answer.by or self.name)
        if answer is True:
            return request.allow(by=self.name)
        if answer is False:
            return request.deny(by=self.name)
        raise TypeError(f"answered {answer!r:.80}, which is neither True, False nor an Answer")

    async def _call(self, request: Request) -> Any:
        if _is_async(self._approve):
            return await self._approve(request)
        answer = await run_interruptibly(lambda: self._approve(request))
        return await answer if inspect.isawaitable(answer) else answer


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
