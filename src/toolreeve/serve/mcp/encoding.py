"""Can an answer be written for a client? Not if it is nested deeper than writers and readers of JSON follow.

A server elsewhere may answer with anything that fits on its line; what cannot be passed on is an error, not a crash.
"""

from typing import Any

import orjson

from toolreeve.core import json
from toolreeve.serve.mcp.protocol import INTERNAL_ERROR, WireError

DEEPEST = 240


def write(answer: Any) -> bytes:
    """As JSON. Raises WireError for what is nested too deeply."""
    try:
        return orjson.dumps(answer)
    except TypeError:
        if _is_deep(answer):
            raise WireError(INTERNAL_ERROR, "the answer is nested too deeply to be passed on") from None
        return json.dumps(answer)


def writable(problem: WireError) -> WireError:
    """The same error, or one that says that it cannot be passed on."""
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
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [each for each in found if isinstance(each, dict | list | tuple)]
