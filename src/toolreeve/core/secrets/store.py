"""Secret stores: named values that are kept for tools and connectors.

A store never shows a value but to `get`. Its methods are safe to call from several threads and processes at once.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from toolreeve.core.errors import ErrorCode, ToolError

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
LONGEST_VALUE = 64 * 1024


class SecretStore(Protocol):
    """All methods raise ToolError: INVALID_PARAMS for a bad name or value, PERMISSION if the store cannot be used."""

    @property
    def title(self) -> str:
        """What it is and where, for people."""
        ...

    def get(self, name: str) -> str | None: ...

    def set(self, name: str, value: str) -> None: ...

    def remove(self, name: str) -> bool:
        """False if there was none."""
        ...

    def list(self) -> Sequence[str]:
        """The names, sorted."""
        ...


def check_name(name: str) -> str:
    """The name, if `${secret:NAME}` can refer to it."""
    if not NAME.fullmatch(name):
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"{name[:80]!r} cannot name a secret: use letters, digits and _, and begin with a letter or _",
        )
    return name


def check_value(value: str) -> str:
    if not value:
        raise ToolError(ErrorCode.INVALID_PARAMS, "a secret cannot be empty")
    if "\0" in value or len(value.encode("utf-8", "replace")) > LONGEST_VALUE:
        limit = LONGEST_VALUE // 1024
        raise ToolError(ErrorCode.INVALID_PARAMS, f"a secret is at most {limit} KB of text without NUL characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ToolError(ErrorCode.INVALID_PARAMS, "a secret must be valid text") from None
    return value
