"""Metadata of a setting: description, bounds, and what a project may change.

A project's own file (`toolreeve.toml` in the workspace) may only tighten: `ProjectScope` defines, field by field, what
that means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ProjectScope(StrEnum):
    """How a project's file may change a setting."""

    NEVER = "never"
    LOWER = "lower"
    ADD = "add"
    TURN_OFF = "turn_off"
    STRICTER = "stricter"
    WHEN_TRUSTED = "when_trusted"


@dataclass(frozen=True, slots=True)
class Field:
    """`paths`: values are paths, resolved against the file that names them. `shape`: the JSON Schema of a value made of
    tables, or a narrower one for a plain value. `also`: other spellings of the key in files."""

    description: str
    project: ProjectScope
    paths: bool = False
    at_least: float | None = None
    above: float | None = None
    shape: Mapping[str, Any] | None = None
    also: tuple[str, ...] = ()
