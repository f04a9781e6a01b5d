"""What is known about a setting besides its value? What it means, its bounds, and how far a project may go.

A project's own file (`toolreeve.toml` in the workspace) may only tighten: `ProjectScope` says, field by field, what
that means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ProjectScope(StrEnum):
    """What a project's file may do to a setting."""

    NEVER = "never"
    LOWER = "lower"
    ADD = "add"
    TURN_OFF = "turn_off"
    STRICTER = "stricter"
    WHEN_TRUSTED = "when_trusted"


@dataclass(frozen=True, slots=True)
class Field:
    """`paths` marks values that are resolved against the file that names them. `shape` is the JSON Schema of a value
    that is made of tables, or narrows a plain one; `also` are other spellings of the key in files."""

    description: str
    project: ProjectScope
    paths: bool = False
    at_least: float | None = None
    above: float | None = None
    shape: Mapping[str, Any] | None = None
    also: tuple[str, ...] = ()
