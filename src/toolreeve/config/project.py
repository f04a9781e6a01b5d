"""Project settings: a project's file may only tighten the user's.

Its author is not the person who runs it. A value that does not tighten is ignored with a notice; a key that no project
may set is an error, so that nobody relies on it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.config.field import ProjectScope
from toolreeve.config.fields import KeyPath, SettingField, setting_fields
from toolreeve.config.layers import Layer, SourcedValue
from toolreeve.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightened:
    """The effective part of a project's layer, notices about ignored values, and errors for forbidden keys."""

    layer: Layer
    notices: tuple[str, ...]
    problems: tuple[ConfigError, ...]


def tighten(base: Layer, project: Layer, *, trusted: bool) -> Tightened:
    """The part of `project` that makes `base` stricter. `base` is the user's own configuration."""
    layer: dict[KeyPath, SourcedValue] = {}
    notices: list[str] = []
    problems: list[ConfigError] = []
    for path, given in project.items():
        setting = setting_fields()[path]
        current = base[path].value if path in base else setting.default
        if setting.field.project is ProjectScope.NEVER:
            problems.append(_not_for_projects(setting, given))
        elif setting.field.project is ProjectScope.WHEN_TRUSTED and not trusted:
            reason = "the folder is not trusted (run `toolreeve trust`)"
            notices.append(f"{given.origin}: {setting.key} is ignored: {reason}")
        elif isinstance(given.value, Mapping):
            layer[path] = SourcedValue(value={**given.value, **current}, origin=given.origin)
        elif _TIGHTENS[setting.field.project](given.value, current):
            layer[path] = SourcedValue(value=_combine(setting.field.project, current, given.value), origin=given.origin)
        elif given.value != current:
            notices.append(f"{given.origin}: {setting.key} is ignored: a project may only tighten {current!r}")
    return Tightened(layer=layer, notices=tuple(notices), problems=tuple(problems))


def _not_for_projects(setting: SettingField, given: SourcedValue) -> ConfigError:
    source, _, line = given.origin.rpartition(":")
    return ConfigError(
        "a project's file may not set this",
        source=source or given.origin,
        line=int(line) if line.isdigit() else None,
        key=setting.key,
        fix="move it to your own toolreeve.toml (`toolreeve config path` shows where)",
    )


def _combine(scope: ProjectScope, current: Any, value: Any) -> Any:
    if scope in (ProjectScope.ADD, ProjectScope.WHEN_TRUSTED):
        return tuple(dict.fromkeys((*current, *value)))
    return value


_STRICTER_THAN: Mapping[str, Sequence[str]] = {
    "accept_edits": ("default", "strict", "plan"),
    "default": ("strict", "plan"),
    "limits": ("landlock", "full"),
    "landlock": ("full",),
    "ask": ("unchanged", "off"),
    "unchanged": ("off",),
}
_TIGHTENS: Mapping[ProjectScope, Callable[[Any, Any], bool]] = {
    ProjectScope.LOWER: lambda value, current: current is None or value < current,
    ProjectScope.ADD: lambda value, current: not set(value) <= set(current),
    ProjectScope.WHEN_TRUSTED: lambda value, current: not set(value) <= set(current),
    ProjectScope.TURN_OFF: lambda value, current: current and not value,
    ProjectScope.STRICTER: lambda value, current: value in _STRICTER_THAN.get(current, ()),
}
