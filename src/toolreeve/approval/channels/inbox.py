"""Approval channel of the console: a stored question, shown while someone watches.

It gives no answer of its own. The console reads the question from the store and decides it there.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from toolreeve.approval.request import Answer, Request


class InboxChannel:
    """Available while at least one person who may approve watches the inbox."""

    name = "console"

    def __init__(self) -> None:
        self._watchers = 0

    def available(self) -> bool:
        return self._watchers > 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """While a person watches."""
        self._watchers += 1
        try:
            yield
        finally:
            self._watchers -= 1

    async def ask(self, request: Request) -> Answer:  # noqa: ARG002
        await asyncio.Event().wait()
        raise AssertionError  # never set
