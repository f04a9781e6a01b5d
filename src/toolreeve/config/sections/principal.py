"""The [principal] table: the role of the local user."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from toolreeve.config.field import Field, ProjectScope
from toolreeve.core.call import Role

RoleName = Literal["viewer", "operator", "admin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalUser:
    """The role of local calls: of the command line, Python, `toolreeve mcp` and hooks."""

    role: Annotated[
        RoleName,
        Field(
            "The role of local calls. viewer: read-only programs; operator: the usual ones; admin: all, and the whole "
            "record. Calls over HTTP have the role of their token.",
            ProjectScope.NEVER,
        ),
    ] = "operator"
    roles: Annotated[
        Mapping[str, Any],
        Field(
            "Roles by name of the operating system's user, in place of principal.role.",
            ProjectScope.NEVER,
            shape={"type": "object", "additionalProperties": {"enum": [role.value for role in Role]}},
        ),
    ] = field(default_factory=dict)
