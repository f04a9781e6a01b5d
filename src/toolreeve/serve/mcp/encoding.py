"""JSON encoding of responses, with a limit on nesting.

An upstream server may answer with anything; a result that is nested too deeply to pass on is an error, not a crash.
"""

from collections.abc import Iterable
from typing import Any

import orjson

from toolreeve.core import json
from toolreeve.rpc.errors import INTERNAL_ERROR
from toolreeve.serve.mcp.protocol import WireError

DEEPEST = 240


def write(answer: Any) -> bytes:
    """Raises WireError if the answer is nested too deeply."""
    try:
        return orjson.dumps(answer)
    except TypeError:
        if _is_deep(answer):
            raise WireError(INTERNAL_ERROR, "the result is nested too deeply to be passed on") from None
        return json.dumps(answer)


def writable(problem: WireError) -> WireError:
    """The error itself, or another one if its data cannot be encoded."""
    try:
        write(problem.data)
    except WireError as deep:
        return deep
    return problem


def _is_deep(answer: Any) -> bool:
    level = [answer]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        items: Iterable[Any] = value.values()
    elif isinstance(value, list | tuple):
        items = value
    else:
        return []
    return [each for each in items if isinstance(each, dict | list | tuple)]
