"""The [record] table: what is never written to the record."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is recorded."""

    redact_env: Annotated[
        tuple[str, ...],
        Field(
            "Environment variables whose values are redacted, in addition to those with telling names "
            "(*_TOKEN, *_KEY, *_SECRET, *_PASSWORD…). The lists of all sources add up.",
            ProjectScope.ADD,
        ),
    ] = ()
