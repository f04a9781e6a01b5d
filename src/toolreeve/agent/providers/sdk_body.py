"""Request bodies for the providers' SDKs, without their costly copies."""

from collections.abc import Mapping
from typing import Any


def untyped(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The body with these lists sent as they are. The SDKs rebuild every nested value of their typed arguments, which
    takes many milliseconds of CPU for a turn in a long conversation."""
    given = {name: body[name] for name in names if name in body}
    return {**body, **{name: [] for name in given}, "extra_body": given}
