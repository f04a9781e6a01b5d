"""Workspace roots: which holds a path, and may it be touched.

Looks at the spelling only, never at the disk. What counts is the path inside the root: a workspace may itself lie below
`/root` or a home. A path is checked twice: as spelled here, and as resolved by the code that opens it.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.guarded_paths import Content, Guarded, GuardTable
from toolreeve.guard.files.errors import forbidden, invalid
from toolreeve.guard.files.system_directories import find_system

SETTING = "workspace.sensitive_allow"
OWN = "controls the runtime itself; only a person may change it"
MAX_PATH = 4095
MAX_NAME = 255


class Root:
    """An allowed directory, held open so that a later swap of its name does not matter."""

    __slots__ = ("descriptor", "path", "prefix", "spellings", "writable")

    def __init__(self, path: str, *, writable: bool) -> None:
        given = os.path.abspath(path)
        try:
            self.path = os.path.realpath(given, strict=True)
            self.descriptor = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as problem:
            raise ToolreeveError(
                f"the root {path!r} is not a directory that can be opened: {problem.strerror}"
            ) from None
        self.prefix = self.path if self.path == "/" else f"{self.path}/"
        self.spellings = tuple(each if each == "/" else f"{each}/" for each in {given: None, self.path: None})
        self.writable = writable

    def join(self, parts: Sequence[str]) -> str:
        return self.prefix + "/".join(parts) if parts else self.path

    def inside(self, path: str) -> str | None:
        """The rest of an absolute path below this root, by either spelling, or None."""
        for prefix in self.spellings:
            if path.startswith(prefix):
                return path[len(prefix) :] or "."
            if path == prefix[:-1]:
                return "."
        return None

    def revive(self) -> None:
        """Reopen the directory if the one held open was removed meanwhile."""
        if os.fstat(self.descriptor).st_nlink:
            return
        try:
            fresh = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        os.dup2(fresh, self.descriptor, inheritable=False)
        os.close(fresh)

    def close(self) -> None:
        os.close(self.descriptor)


class ParsedPath(NamedTuple):
    """A path as spelled: its root, the rest, and the path it names if no link is in the way."""

    root: Root
    rest: bytes
    path: str
    refusal: str | None


class Roots:
    """All allowed roots and the rules for what is in them.

    `protected` are absolute paths that are refused altogether, `unwritable` ones that may only be read,
    `sensitive_allow` relative paths or patterns of sensitive files that the configuration allows. `homes` and
    `environment` are those of the table of guarded paths.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        *,
        protected: Sequence[str] = (),
        unwritable: Sequence[str] = (),
        sensitive_allow: Sequence[str] = (),
        home: str | None = None,
        homes: Sequence[str] = (),
        environment: Sequence[str] = (),
        noun: str = "the workspace",
    ) -> None:
        self.main = roots[0]
        self._noun = noun
        self._roots = sorted(roots, key=lambda root: len(root.path), reverse=True)
        self._protected = tuple(os.path.realpath(path) for path in protected)
        self._unwritable = tuple(os.path.realpath(path) for path in unwritable)
        self._guards = GuardTable(
            roots=tuple(root.path for root in roots),
            homes=tuple(homes),
            environment=tuple(environment),
            governing=self._unwritable,
            allowed=tuple(sensitive_allow),
        )
        self._home = home
        self._parsed: dict[str, ParsedPath] = {}

    def parse(self, path: str) -> ParsedPath:
        """A path that may be opened. Raises ToolError for others."""
        found = self._parsed.get(path)
        if found is None:
            found = self._remember(path)
        if found.refusal is not None:
            raise forbidden(path, found.refusal)
        return found

    def _remember(self, path: str) -> ParsedPath:
        if len(self._parsed) >= 4096:
            self._parsed.clear()
        found = self._parsed[path] = self._parse(path)
        return found

    def _parse(self, path: str) -> ParsedPath:
        check_form(path)
        root, rest = self.locate(self.absolute(path), path)
        clear = os.path.normpath(root.prefix + rest)
        refusal = self.refusal(clear) if self.find(clear) is not None else None
        return ParsedPath(root, os.fsencode(rest), clear, refusal)

    def absolute(self, path: str) -> str:
        """The absolute path, otherwise as spelled: `..` is kept, because its meaning depends on links."""
        if path.startswith("/"):
            return f"/{path.lstrip('/')}"
        if path == "~" or path.startswith("~/"):
            if self._home is None:
                raise forbidden(path, "'~' is not expanded; write the path in full, or './~' for a file of that name")
            return self._home + path[1:]
        return self.main.prefix + path

    def normalise(self, path: str) -> str:
        """The absolute path by its spelling alone, for naming what may not be touched."""
        if path.startswith("~/"):
            return os.path.normpath((self._home or "~") + path[1:])
        return os.path.normpath(os.path.join(self.main.path, path))

    def locate(self, absolute: str, path: str) -> tuple[Root, str]:
        """The root and the rest of an absolute path. Raises ToolError(PATH_FORBIDDEN) when no root holds it."""
        for candidate in (absolute, os.path.normpath(absolute)):
            for root in self._roots:
                if (rest := root.inside(candidate)) is not None:
                    return root, rest
        raise forbidden(path, f"lies outside {self._noun} {self.main.path}")

    def find(self, resolved: str) -> Root | None:
        """The root of a resolved path."""
        for root in self._roots:
            if resolved == root.path or resolved.startswith(root.prefix):
                return root
        return None

    def refusal(self, resolved: str, *, change: bool = False) -> str | None:
        """Why a resolved path may not be touched (or changed), or None."""
        root = self.find(resolved)
        if root is None:
            return f"leads outside {self._noun} {self.main.path}"
        if any(resolved == each or resolved.startswith(f"{each}/") for each in self._protected):
            return "is the runtime's own state"
        if (reason := self._guards.hidden(resolved) or self._find_system(resolved, root)) is not None:
            return f"{reason}; it is refused unless {SETTING} names it"
        return self._unchangeable(root, resolved) if change else None

    def _find_system(self, resolved: str, root: Root) -> str | None:
        return None if self._guards.is_allowed(resolved, root.path) else find_system(resolved, root.path)

    def _unchangeable(self, root: Root, resolved: str) -> str | None:
        if not root.writable:
            return f"{root.path} may only be read"
        if any(each.startswith(f"{resolved}/") for each in (*self._protected, *self._unwritable)):
            return OWN
        guard = self._guards.guarded(resolved)
        if guard is None or _is_judged_by_content(guard, resolved):
            return None
        return f"{guard.by}; a change is refused unless {SETTING} names it" if guard.liftable else OWN

    def content_check(self, resolved: str) -> Content | None:
        """How the content of a file decides whether it may be written at a path that may be changed."""
        guard = self._guards.guarded(resolved)
        return None if guard is None else guard.content

    def is_allowed(self, resolved: str, root: Root) -> bool:
        """Whether `workspace.sensitive_allow` names a path."""
        return self._guards.is_allowed(resolved, root.path)

    def close(self) -> None:
        for root in self._roots:
            root.close()


def _is_judged_by_content(guard: Guarded, resolved: str) -> bool:
    """Of what git reads, a tool may write the files beside the sources, not those in a repository."""
    beside = (".gitattributes", ".gitmodules", ".tool-versions")
    return resolved.rpartition("/")[2].casefold() in beside and guard.content is not None


def check_form(path: str) -> None:
    """Raise ToolError(INVALID_PATH) for a string that cannot name a file."""
    if not path:
        raise ToolError(ErrorCode.INVALID_PATH, "The path is empty")
    if "\0" in path:
        raise invalid(path, "contains a NUL character")
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise invalid(path, "is not valid UTF-8 text") from None
    if len(encoded) > MAX_PATH:
        raise invalid(path, f"is longer than {MAX_PATH} bytes")
    if any(len(name) > MAX_NAME for name in encoded.split(b"/")):
        raise invalid(path, f"contains a name longer than {MAX_NAME} bytes")
