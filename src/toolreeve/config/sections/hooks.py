"""The [hooks] table: how hooks of agent clients are answered."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """How hooks of agent clients are answered."""

    resident_minutes: Annotated[
        int,
        Field(
            "How long a background process stays after a hook had to decide by itself, so that the next ones are "
            "answered in milliseconds; 0 starts none.",
            ProjectScope.NEVER,
            at_least=0,
        ),
    ] = 10
