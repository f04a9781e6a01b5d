"""Path resolution: checks and opens a path in one step.

Checking and opening are one step, so a swap between them gains nothing. A path without links is opened beneath its root
by openat2. Any other is walked directory by directory, each held open and never followed through a link by the kernel:
links are read and resolved here. Both ways end in a descriptor or in a `Spot`, and in a real path that is checked
again.
"""

import errno
import os
import stat
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from toolreeve.core.errors import ErrorCode
from toolreeve.core.openat2 import How, open_beneath
from toolreeve.guard.files.errors import (
    forbidden,
    from_system,
    invalid,
    missing_directory,
    missing_file,
    not_a_directory,
)
from toolreeve.guard.files.roots import Root, Roots

MAX_LINKS = 40
MAX_RETRIES = 16
READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
PASSING = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = How(READING)
_LIST = How(READING | os.O_DIRECTORY)
_NAME = How(os.O_PATH | os.O_CLOEXEC)
T = TypeVar("T")


class _Swapped(Exception):
    """A component changed its kind while the path was walked."""


class Spot:
    """A name in a directory that is held open: whatever happens to the path above, this is the place that was checked.

    `missing` are directories that do not exist yet between the open one and `name`.
    """

    __slots__ = ("descriptor", "missing", "name", "parts", "root")

    def __init__(self, root: Root, descriptor: int, parts: list[str], missing: list[str], name: str) -> None:
        self.root = root
        self.descriptor = descriptor
        self.parts = parts
        self.missing = missing
        self.name = name

    @property
    def path(self) -> str:
        below = [*self.parts, *self.missing]
        if self.name != ".":
            below.append(self.name)
        return self.root.join(below)

    @property
    def directory(self) -> str:
        return self.root.join(self.parts)

    def stat(self) -> os.stat_result | None:
        """What is there, a link not followed, or None."""
        if self.missing:
            return None
        try:
            return os.stat(self.name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self, flags: int) -> int:
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.descriptor)

    def __enter__(self) -> "Spot":
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        os.close(self.descriptor)


class Paths:
    """Opens paths within `roots`; `use_openat2` applies where no link is in the way."""

    def __init__(self, roots: Roots, *, use_openat2: bool) -> None:
        self.roots = roots
        self._use_openat2 = use_openat2

    def open(self, path: str, *, directory: bool = False) -> tuple[int, str]:
        """A descriptor for reading, and the real path. Not yet checked to be a regular file."""
        parsed = self.roots.parse(path)
        if self._use_openat2:
            found = open_beneath(parsed.root.descriptor, parsed.rest, _LIST if directory else _READ)
            if found >= 0:
                return found, parsed.path
        return self._retry(path, lambda: self._open_walked(path, directory=directory))

    def resolve(self, path: str) -> str:
        """The real path of what may be touched, existing or not."""
        if self._use_openat2:
            parsed = self.roots.parse(path)
            found = open_beneath(parsed.root.descriptor, parsed.rest, _NAME)
            if found >= 0:
                os.close(found)
                return parsed.path
        with self.spot(path) as spot:
            self.require(spot.path, path)
            return spot.path

    def spot(self, path: str, *, follow: bool = True) -> Spot:
        """The place of a path, existing or not. With `follow`, a link at its end is followed as well."""
        return self._retry(path, lambda: self._walk(path, follow=follow))

    def _retry(self, path: str, attempt: Callable[[], T]) -> T:
        for _ in range(MAX_RETRIES):
            try:
                return attempt()
            except _Swapped:
                continue
        raise forbidden(path, "keeps changing while it is being opened")

    def _open_walked(self, path: str, *, directory: bool) -> tuple[int, str]:
        with self._walk(path, follow=True) as spot:
            if spot.missing:
                raise missing_directory(self.relative(spot.root, [*spot.parts, spot.missing[0]]), path)
            self.require(spot.path, path)
            try:
                return spot.open(READING | (os.O_DIRECTORY if directory else 0)), spot.path
            except OSError as problem:
                raise self._explain(problem, spot, path, directory=directory) from None

    def _explain(self, problem: OSError, spot: Spot, path: str, *, directory: bool) -> Exception:
        if problem.errno == errno.ELOOP:
            return _Swapped()
        if problem.errno == errno.ENOENT and directory:
            return missing_directory(self.relative(spot.root, [*spot.parts, spot.name]), path)
        if problem.errno == errno.ENOENT:
            return missing_file(path)
        if problem.errno == errno.ENOTDIR:
            found = spot.stat()
            return _Swapped() if found and stat.S_ISLNK(found.st_mode) else not_a_directory(path, path)
        return from_system(problem, path, ErrorCode.READ_ERROR)

    def require(self, resolved: str, path: str, *, change: bool = False) -> None:
        if reason := self.roots.refusal(resolved, change=change):
            raise forbidden(path, reason)

    def relative(self, root: Root, parts: list[str]) -> str:
        return "/".join(parts) if root is self.roots.main else root.join(parts)

    def _walk(self, path: str, *, follow: bool) -> Spot:
        parsed = self.roots.parse(path)
        parsed.root.revive()
        with _Trail(parsed.root) as trail:
            return self._descend(path, os.fsdecode(parsed.rest), trail, follow=follow)

    def _descend(self, path: str, rest: str, trail: "_Trail", *, follow: bool) -> Spot:
        ahead = _names(rest)
        links = 0
        while ahead:
            name = ahead.pop()
            if name == "..":
                self._climb(path, trail, ahead)
                continue
            if trail.missing:
                if ahead:
                    trail.missing.append(name)
                    continue
                return trail.end(name)
            target = self._enter(path, trail, name, last=not ahead, follow=follow)
            if target is None and not ahead:
                return trail.end(name)
            if target is not None:
                links += 1
                if links > MAX_LINKS:
                    raise invalid(path, "leads through too many links")
                self._follow(path, trail, target, ahead)
        return trail.end(".")

    def _enter(self, path: str, trail: "_Trail", name: str, *, last: bool, follow: bool) -> str | None:
        """Enter `name` unless it is the last; returns the target if it is a link to follow."""
        try:
            found = os.stat(name, dir_fd=trail.descriptor, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                return os.readlink(name, dir_fd=trail.descriptor) if follow or not last else None
            if not last:
                trail.enter(name)
        except FileNotFoundError:
            if not last:
                trail.missing.append(name)
        except NotADirectoryError:
            if not stat.S_ISDIR(found.st_mode):
                raise not_a_directory(self.relative(trail.root, [*trail.parts, name]), path) from None
            raise _Swapped from None
        except OSError as problem:
            if problem.errno in (errno.ELOOP, errno.EINVAL):
                raise _Swapped from None
            raise from_system(problem, path, ErrorCode.READ_ERROR) from None
        return None

    def _climb(self, path: str, trail: "_Trail", ahead: list[str]) -> None:
        if trail.missing:
            if self.roots.find(self.roots.normalise(path)) is None:
                raise forbidden(path, f"lies outside the workspace {self.roots.main.path}")
            raise missing_directory(self.relative(trail.root, [*trail.parts, trail.missing[0]]), path)
        if trail.parts:
            trail.leave()
        else:
            self._follow(path, trail, os.path.dirname(trail.root.path) or "/", ahead)

    def _follow(self, path: str, trail: "_Trail", target: str, ahead: list[str]) -> None:
        """Continue at a link's target: relative to here, or, if absolute, anywhere within the roots."""
        if not target.startswith("/"):
            ahead += _names(target)
            return
        whole = "/".join([target, *reversed(ahead)])
        root, rest = self.roots.locate(f"/{whole.lstrip('/')}", path)
        trail.restart(root)
        ahead[:] = _names(rest)


class _Trail:
    """The directories walked so far, all held open, so that `..` needs no help from the kernel."""

    def __init__(self, root: Root) -> None:
        self._open: list[int] = []
        self.restart(root)

    def restart(self, root: Root) -> None:
        self.root = root
        self.parts: list[str] = []
        self.missing: list[str] = []
        self._release()

    @property
    def descriptor(self) -> int:
        return self._open[-1] if self._open else self.root.descriptor

    def enter(self, name: str) -> None:
        self._open.append(os.open(name, PASSING, dir_fd=self.descriptor))
        self.parts.append(name)

    def leave(self) -> None:
        self.parts.pop()
        os.close(self._open.pop())

    def end(self, name: str) -> Spot:
        return Spot(self.root, os.dup(self.descriptor), self.parts, self.missing, name)

    def _release(self) -> None:
        while self._open:
            os.close(self._open.pop())

    def __enter__(self) -> "_Trail":
        return self

    def __exit__(self, *_: object) -> None:
        self._release()


def _names(path: str) -> list[str]:
    """The names of a path in reverse, so that they can be popped in order."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
