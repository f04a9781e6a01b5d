"""What may a project's own file change? Only towards more care: whoever wrote it is not the one who runs it.

A value that the user's own configuration already goes beyond is passed over with a notice; a key that no project may
set is an error, so that nobody believes it holds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.config.field import ProjectScope
from toolreeve.config.fields import KeyPath, SettingField, leaves
from toolreeve.config.layers import Given, Layer
from toolreeve.core.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tightened:
    """What is left of a project's layer, what was passed over, and what must not stand there at all."""

    layer: Layer
    notices: tuple[str, ...]
    problems: tuple[ConfigError, ...]


def tighten(base: Layer, project: Layer, *, trusted: bool) -> Tightened:
    """The part of `project` that makes `base` stricter. `base` holds what the user's own file says."""
    layer: dict[KeyPath, Given] = {}
    notices: list[str] = []
    problems: list[ConfigError] = []
    for path, given in project.items():
        leaf = leaves()[path]
        current = base[path].value if path in base else leaf.default
        if leaf.about.project is ProjectScope.NEVER:
            problems.append(_not_for_projects(leaf, given))
        elif leaf.about.project is ProjectScope.WHEN_TRUSTED and not trusted:
            notices.append(f"{given.origin}: {leaf.key} is ignored: the folder is not trusted (run `toolreeve trust`)")
        elif isinstance(given.value, Mapping):
            layer[path] = Given(value={**given.value, **current}, origin=given.origin)
        elif _stricter(leaf.about.project, given.value, than=current):
            layer[path] = Given(value=_joined(leaf.about.project, current, given.value), origin=given.origin)
        elif given.value != current:
            notices.append(f"{given.origin}: {leaf.key} is ignored: a project may only tighten {current!r}")
    return Tightened(layer=layer, notices=tuple(notices), problems=tuple(problems))


def _not_for_projects(leaf: SettingField, given: Given) -> ConfigError:
    source, _, line = given.origin.rpartition(":")
    return ConfigError(
        "a project's file may not set this",
        source=source or given.origin,
        line=int(line) if line.isdigit() else None,
        key=leaf.key,
        fix="move it to your own toolreeve.toml (`toolreeve config path` says where)",
    )


def _stricter(rule: ProjectScope, value: Any, *, than: Any) -> bool:
    return _RULES[rule](value, than)


def _joined(rule: ProjectScope, current: Any, value: Any) -> Any:
    if rule in (ProjectScope.ADD, ProjectScope.WHEN_TRUSTED):
        return tuple(dict.fromkeys((*current, *value)))
    return value


_STRICTER_THAN: Mapping[str, Sequence[str]] = {
    "default": ("strict", "plan"),
    "limits": ("landlock", "full"),
    "landlock": ("full",),
}
_RULES: Mapping[ProjectScope, Callable[[Any, Any], bool]] = {
    ProjectScope.LOWER: lambda value, current: current is None or value < current,
    ProjectScope.ADD: lambda value, current: not set(value) <= set(current),
    ProjectScope.WHEN_TRUSTED: lambda value, current: not set(value) <= set(current),
    ProjectScope.TURN_OFF: lambda value, current: current and not value,
    ProjectScope.STRICTER: lambda value, current: value in _STRICTER_THAN.get(current, ()),
}
