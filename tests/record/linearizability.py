"""Linearizability checker for small histories: is there an order that explains every answer?"""

import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

Model = Callable[[Any, Any], tuple[Any, Hashable]]
"""State and request to the answer and the new state."""


@dataclass(frozen=True, slots=True)
class Operation:
    began: float
    ended: float
    request: Any
    answer: Any


async def observed(request: Any, answer: Awaitable[Any]) -> Operation:
    began = time.perf_counter()
    found = await answer
    return Operation(began, time.perf_counter(), request, found)


def is_linearizable(history: Sequence[Operation], model: Model, state: Hashable) -> bool:
    """An operation may come first if no other one ended before it began."""
    seen: set[tuple[frozenset[int], Hashable]] = set()
    stack: list[tuple[frozenset[int], Hashable]] = [(frozenset(range(len(history))), state)]
    while stack:
        left, current = stack.pop()
        if not left:
            return True
        if (left, current) in seen:
            continue
        seen.add((left, current))
        first_end = min(history[number].ended for number in left)
        for number in left:
            if history[number].began <= first_end:
                answer, after = model(current, history[number].request)
                if answer == history[number].answer:
                    stack.append((left - {number}, after))
    return False
