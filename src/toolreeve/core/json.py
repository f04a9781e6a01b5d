"""JSON encoding: orjson, with the standard library for what it refuses.

orjson refuses integers beyond 64 bits and lone surrogates; the standard library writes both faithfully.
"""

import json
from typing import Any

import orjson


def dumps(value: Any) -> bytes:
    """Compact JSON. Raises TypeError for values without a JSON form (sets, objects, circular references)."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _exact(value)


def _exact(value: Any) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, RecursionError) as problem:
        raise TypeError(f"not representable as JSON: {problem}") from None


def loads(text: bytes | bytearray | str) -> Any:
    """Raises ValueError for anything that is not one JSON document."""
    return orjson.loads(text)


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
