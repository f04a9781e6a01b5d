"""The [secrets] table: where secrets are kept."""

from dataclasses import dataclass
from typing import Annotated, Literal

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """Where secrets are kept."""

    store: Annotated[
        Literal["auto", "file", "keyring"],
        Field(
            "Where `toolreeve secrets set` keeps them. auto: the keyring of the operating system if there is one, else "
            "secrets.toml beside your toolreeve.toml. Environment variables are always looked up last.",
            ProjectScope.NEVER,
        ),
    ] = "auto"
