"""What is written down, what never is, and where is it kept?"""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is written down."""

    redact_env: Annotated[
        tuple[str, ...],
        Field(
            "Environment variables whose values are never written down, besides those whose names tell "
            "(*_TOKEN, *_KEY, *_SECRET, *_PASSWORD…). The lists of all sources add up.",
            ProjectScope.ADD,
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the runtime keeps what it must remember."""

    dir: Annotated[
        str,
        Field(
            "The directory of the audit log, undo and trust; toolreeve in the user's state directory if not set.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ""
