"""The [quality] table: the project's test, lint, format and build commands."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """The commands of run_tests and the other quality tools, where detection should not choose them. Each entry is a
    command as for execute_command, but with any program."""

    tests: Annotated[
        tuple[str, ...],
        Field("The commands of run_tests.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    lint: Annotated[
        tuple[str, ...],
        Field("The commands of run_lint.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    format: Annotated[
        tuple[str, ...],
        Field("The commands of run_format when it changes files.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    format_check: Annotated[
        tuple[str, ...],
        Field("The commands of run_format when it only checks.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    typecheck: Annotated[
        tuple[str, ...],
        Field("The commands of run_typecheck.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    build: Annotated[
        tuple[str, ...],
        Field("The commands of run_build.", ProjectScope.WHEN_TRUSTED),
    ] = ()
    timeout: Annotated[
        float,
        Field("Timeout of each of these tools in seconds.", ProjectScope.LOWER, above=0),
    ] = 600.0
