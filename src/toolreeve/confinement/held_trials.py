"""Held trials: what a call changed, until its question is answered.

A client that cannot be asked during its call repeats it with the answer. Then exactly the bytes that were asked about
are kept, and nothing runs again.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolreeve.core.errors import ToolError
from toolreeve.core.result import Output

if TYPE_CHECKING:
    from toolreeve.confinement.trials import FinishedTrial

MOST_HELD = 4
HELD_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class HeldTrial:
    trial: "FinishedTrial"
    ended: Output | ToolError


class HeldTrials:
    """By the binding of the call. The oldest makes room for a new one."""

    def __init__(self) -> None:
        self._held: dict[str, HeldTrial] = {}

    def add(self, binding: str, held: HeldTrial) -> None:
        self.drop(binding)
        if len(self._held) >= MOST_HELD:
            self.drop(next(iter(self._held)))
        self._held[binding] = held
        asyncio.get_running_loop().call_later(HELD_SECONDS, self._expire, binding, held)

    def take(self, binding: str) -> HeldTrial | None:
        """The caller closes it, or adds it again."""
        return self._held.pop(binding, None)

    def holds(self, layer: int) -> bool:
        """Whether the descriptor of a layer belongs to a held trial."""
        return any(layer in held.trial.layers for held in self._held.values())

    def drop(self, binding: str) -> None:
        if (held := self.take(binding)) is not None:
            held.trial.close()

    def _expire(self, binding: str, held: HeldTrial) -> None:
        if self._held.get(binding) is held:
            self.drop(binding)

    def close(self) -> None:
        for binding in list(self._held):
            self.drop(binding)
