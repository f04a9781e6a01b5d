"""Paths into call arguments, such as `path`, `headers.Accept`, `edits[*].new` or `$`."""

import re
from collections.abc import Mapping
from typing import Any

from toolreeve.core.action import Action
from toolreeve.policy.conditions import EVERY, ConditionProblem, Purpose, Test, Truth

Steps = tuple[str | int, ...]
_STEP = re.compile(r"""\.?([^.\[\]"'$]+)|\[(\d+)\]|\[(\*)\]|\["([^"]*)"\]|\['([^']*)'\]""")


def parse_steps(text: str) -> Steps:
    """`$` alone stands for all arguments. Raises ConditionProblem."""
    rest = text[1:] if text.startswith("$") else text
    steps: list[str | int] = []
    position = 0
    while position < len(rest):
        found = _STEP.match(rest, position)
        if found is None:
            raise ConditionProblem(
                f"{text!r} is not a valid argument path",
                fix='write it like path, headers.Accept, edits[*].new, ["a.b"]',
            )
        name, index, every, double, single = found.groups()
        if index is not None:
            steps.append(int(index))
        elif every:
            steps.append(_Every())
        else:
            steps.append(name or double or single or "")
        position = found.end()
    if not text:
        raise ConditionProblem("the name of the argument is empty")
    return tuple(steps)


class _Every(str):
    """The step `[*]`, distinct from a key that is called `*`."""

    __slots__ = ()

    def __new__(cls) -> "_Every":
        return super().__new__(cls, EVERY)


def select(value: Any, steps: Steps) -> list[Any]:
    """The values at the path: None for an absent value, an empty list for a list without items."""
    for position, step in enumerate(steps):
        if isinstance(step, _Every):
            if not isinstance(value, (list, tuple)):
                return [None]
            return [found for item in value for found in select(item, steps[position + 1 :])]
        value = _step_into(value, step)
        if value is None:
            return [None]
    return [value]


def _step_into(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return value[step] if isinstance(value, (list, tuple)) and step < len(value) else None
    return value.get(step) if isinstance(value, Mapping) else None


def evaluate(action: Action, steps: Steps, test: Test, purpose: Purpose) -> Truth:
    """Whether the selected arguments pass the test. An empty list never does."""
    values = select(action.args, steps)
    return purpose.combine([test(value, action) for value in values]) if values else False
