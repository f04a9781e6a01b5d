"""The [state] table: where the runtime keeps its data."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the runtime keeps its data."""

    dir: Annotated[
        str,
        Field(
            "The directory of the audit log, undo and trust; toolreeve in the user's state directory if not set.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = ""
    url: Annotated[
        str,
        Field(
            "The PostgreSQL database that several gateways share, such as postgresql://user@host/name; empty for a "
            "SQLite file in state.dir. ${secret:NAME} keeps the password out of the file. Needs the extra `postgres`.",
            ProjectScope.NEVER,
        ),
    ] = ""
