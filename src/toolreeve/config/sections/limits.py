"""The [limits] table: default timeout, concurrency and output of calls."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a call may use."""

    timeout: Annotated[
        float,
        Field("Timeout of a call in seconds, unless its tool sets one.", ProjectScope.LOWER, above=0),
    ] = 60.0
    concurrency: Annotated[
        int,
        Field("Maximum number of calls that run at the same time.", ProjectScope.LOWER, at_least=1),
    ] = 64
    output_chars: Annotated[
        int,
        Field(
            "Characters of a result that a model is sent at once; the tool `read_output` reads on.",
            ProjectScope.LOWER,
            at_least=1_000,
        ),
    ] = 30_000
