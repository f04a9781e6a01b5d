"""Catalogue of YAML tools: loaded at start, reloaded when a file changes.

A file with an error keeps the tools of its last valid version and reports the error; other files are not affected. A
trusted file is not read again after it changed: a person must review it first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.core.names import canonical
from toolreeve.core.tool import BoundTool
from toolreeve.registry import ToolRegistry

if TYPE_CHECKING:
    from toolreeve.scripted.error_mapping import Profile
    from toolreeve.scripted.tool import Lookup

ENDINGS = (".yaml", ".yml")
Stamp = tuple[int, int, int] | None


def no_secrets(_: str) -> None:
    """A lookup that finds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueChange:
    """The effect of a changed file on the registered tools."""

    path: str
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    problems: tuple[ConfigError, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.path,
            "added": list(self.added),
            "changed": list(self.changed),
            "removed": list(self.removed),
            "problems": list(map(str, self.problems)),
        }


@dataclass(slots=True)
class _File:
    path: Path
    stamp: Stamp = None
    tools: dict[str, BoundTool] = field(default_factory=dict)
    problems: tuple[ConfigError, ...] = ()


class Catalogue:
    """`trusted` are files that count only as they were when the runtime started."""

    def __init__(
        self,
        paths: Sequence[str],
        registry: ToolRegistry,
        *,
        profile: "Profile" = "acp-basic",
        secret: "Lookup" = no_secrets,
        trusted: Collection[str] = (),
    ) -> None:
        self._files = [_File(Path(path)) for path in paths if path.endswith(ENDINGS)]
        self._registry = registry
        self._profile = profile
        self._secret = secret
        self._trusted = frozenset(trusted)
        self.used: set[str] = set()
        for file in self._files:
            file.stamp = _stamp(file.path)
            self._read(file)

    @property
    def is_empty(self) -> bool:
        return not self._files

    @property
    def problems(self) -> tuple[ConfigError, ...]:
        return tuple(problem for file in self._files for problem in file.problems)

    def refresh(self) -> list[CatalogueChange]:
        """Reload the files that changed since the last call."""
        changes = []
        for file in self._files:
            stamp = _stamp(file.path)
            if stamp != file.stamp:
                file.stamp = stamp
                changes.append(self._refuse(file) if str(file.path) in self._trusted else self._read(file))
        return changes

    def _refuse(self, file: _File) -> CatalogueChange:
        fix = "review it, run `toolreeve trust`, and restart"
        file.problems = (ConfigError("has changed since it was trusted", source=file.path, fix=fix),)
        return CatalogueChange(path=str(file.path), problems=file.problems)

    def _read(self, file: _File) -> CatalogueChange:
        try:
            found = self._tools(file)
        except ConfigErrors as several:
            file.problems = several.problems
        except ConfigError as problem:
            file.problems = (problem,)
        else:
            file.problems = ()
            return self._replace(file, found)
        return CatalogueChange(path=str(file.path), problems=file.problems)

    def _tools(self, file: _File) -> dict[str, BoundTool]:
        from toolreeve.scripted.definition import read_definitions
        from toolreeve.scripted.tool import bind_definition

        definitions = read_definitions(file.path, profile=self._profile)
        found = {each.id: bind_definition(each, self._secret) for each in definitions}
        for name in found:
            if canonical(name) != name:
                raise ConfigError(f"{name!r} is an alias of the tool {canonical(name)!r}", source=file.path, key=name)
            other = self._registry.get(name)
            if other is not None and file.tools.get(name) is not other:
                raise ConfigError(
                    f"{name!r} is already the name of a tool of {other.spec.source}", source=file.path, key=name
                )
        self.used |= {name for each in definitions for name in each.sandbox.secrets}
        return found

    def _replace(self, file: _File, found: dict[str, BoundTool]) -> CatalogueChange:
        before = file.tools
        file.tools = found
        for name in before:
            self._registry.unregister(name)
        for tool in found.values():
            self._registry.register(tool)
        return CatalogueChange(
            path=str(file.path),
            added=tuple(name for name in found if name not in before),
            changed=tuple(name for name in found if name in before),
            removed=tuple(name for name in before if name not in found),
        )


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
