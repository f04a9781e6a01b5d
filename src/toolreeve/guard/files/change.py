"""Change targets: where a file may change, what is there now.

Every kind of change needs the same: a checked spot that is locked for it, its former content kept for undo, and
refusals of the operating system turned into tool errors.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Changed, Keep
from toolreeve.core.fingerprints import entry_fingerprint, file_fingerprint
from toolreeve.core.git_config import find_harm
from toolreeve.core.guarded_paths import REPOSITORY_MAKERS, REPOSITORY_NAMES, is_repository
from toolreeve.core.tool_state import find_programs
from toolreeve.guard.files.draft import make_directories, remove_empty
from toolreeve.guard.files.errors import failed, forbidden, from_system, missing_directory
from toolreeve.guard.files.paths import READING, Paths, Spot
from toolreeve.guard.files.reader import require_regular
from toolreeve.guard.files.roots import SETTING

_ATTEMPTS = 4


class Outdated(Exception):
    """The target changed between looking and acting; look again."""


class ChangeTarget:
    """Changes of one path are serialised: each locks its spot until it is done.

    Whether a directory is a repository depends on several paths. So the changes that can make one, writes of certain
    names and all moves, are located and made one at a time, with `making` locked before any path.
    """

    def __init__(self, paths: Paths, *, allowed: bool, keep: Keep | None) -> None:
        self._paths = paths
        self._allowed = allowed
        self._keep = keep
        self._locks = tuple(threading.Lock() for _ in range(64))
        self.making = threading.Lock()

    @contextmanager
    def hold(self, path: str, *, follow: bool) -> Iterator[Spot]:
        """The spot of a path to write, locked."""
        with ExitStack() as held:
            spot = held.enter_context(self.locate(path, follow=follow))
            if _may_make_repository(spot):
                held.enter_context(self.making)
                spot = held.enter_context(self.locate(path, follow=follow))
            held.enter_context(self.lock(spot.path))
            yield spot

    def locate(self, path: str, *, follow: bool) -> Spot:
        """The spot of a path that may be changed, checked both as spelled and as resolved."""
        self.require_allowed()
        spelled = self._paths.roots.parse(path).path
        if self._paths.roots.find(spelled) is not None:
            self._paths.require(spelled, path, change=True)
        spot = self._paths.spot(path, follow=follow)
        try:
            if spot.name == "." or (not spot.parts and not spot.missing and not spot.name):
                raise failed(ErrorCode.WRITE_ERROR, path, "is a directory, not a file")
            self._paths.require(spot.path, path, change=True)
            self._refuse_repositories(spot, path)
        except ToolError:
            os.close(spot.descriptor)
            raise
        return spot

    def _refuse_repositories(self, spot: Spot, path: str) -> None:
        """A directory is a repository by what is in it, so what would make one is refused like its settings. One called
        `.git` is left to the table of guarded paths, which knows its settings."""
        names = [*spot.parts, *spot.missing, spot.name]
        for at, name in enumerate(names):
            if at and names[at - 1].casefold() == ".git":
                continue
            folded = name.casefold()
            if folded in REPOSITORY_NAMES and is_repository({*_repository_entries(spot.root.join(names[:at])), folded}):
                if self._paths.roots.is_allowed(spot.path, spot.root):
                    return
                raise forbidden(path, f"git would treat it as part of a repository; refused unless {SETTING} names it")

    def require_inert(self, spot: Spot, path: str, data: bytes) -> None:
        """Refuse content that makes the host run programs, where the content of the file decides that."""
        kind = self._paths.roots.content_check(spot.path)
        harm = find_harm(kind, data)
        if kind == "state" and (named := find_programs(os.path.basename(spot.path).casefold(), data)):
            harm = f"it makes the host run programs ({', '.join(sorted(named))})"
        if harm is not None:
            raise forbidden(path, f"{harm}; it is refused unless {SETTING} names it")

    def require_allowed(self) -> None:
        if not self._allowed:
            raise ToolError(
                ErrorCode.WRITE_DISABLED, "Writing is disabled for this workspace (workspace.allow_write = false)"
            )

    def require_directory(self, spot: Spot, path: str, *, create: bool) -> None:
        if spot.missing and not create:
            raise missing_directory(self._paths.relative(spot.root, [*spot.parts, spot.missing[0]]), path)

    def remove_directory(self, path: str) -> bool:
        with self.locate(path, follow=False) as spot, write_errors(path):
            return remove_empty(spot)

    def fingerprint_spot(self, spot: Spot) -> str | None:
        found = spot.stat()
        if found is None:
            return None
        return entry_fingerprint(spot.descriptor, spot.name, found, lambda: self._fingerprint_file(spot))

    def _fingerprint_file(self, spot: Spot) -> str:
        with self.open_regular(spot) as (descriptor, opened):
            return file_fingerprint(descriptor, opened)

    def keep_former(self, spot: Spot, path: str, found: os.stat_result) -> tuple[str | None, bool]:
        """The fingerprint of what is about to be replaced, and whether it can be restored."""
        if stat.S_ISLNK(found.st_mode):
            return self.fingerprint_spot(spot), self._keep is not None
        require_regular(found, path, otherwise=ErrorCode.WRITE_ERROR)
        with self.open_regular(spot) as (descriptor, opened):
            return file_fingerprint(descriptor, opened), self.save(descriptor, opened)

    def save(self, descriptor: int, found: os.stat_result) -> bool:
        if self._keep is None or found.st_size > self._keep.largest:
            return False
        self._keep.save(descriptor)
        return True

    @contextmanager
    def open_regular(self, spot: Spot) -> Iterator[tuple[int, os.stat_result]]:
        descriptor = spot.open(READING)
        try:
            yield descriptor, require_regular(os.fstat(descriptor), spot.path)
        finally:
            os.close(descriptor)

    @contextmanager
    def make_missing(self, spot: Spot, made: Sequence[str]) -> Iterator[None]:
        """Make the missing directories; they are removed again if the block fails."""
        try:
            make_directories(spot)
            yield
        except BaseException:
            for directory in reversed(made):
                with suppress(ToolError, OSError):
                    self.remove_directory(directory)
            raise

    @contextmanager
    def lock(self, *paths: str) -> Iterator[None]:
        numbers = sorted({hash(path) % len(self._locks) for path in paths})
        with ExitStack() as held:
            for number in numbers:
                held.enter_context(self._locks[number])
            yield

    def retry(self, path: str, attempt: Callable[[], Changed]) -> Changed:
        for _ in range(_ATTEMPTS):
            try:
                with write_errors(path):
                    return attempt()
            except (Outdated, FileExistsError):
                continue
        raise ToolError(ErrorCode.WRITE_ERROR, f"{path}: keeps changing while it is being written")


def _may_make_repository(spot: Spot) -> bool:
    return any(name.casefold() in REPOSITORY_MAKERS for name in (*spot.missing, spot.name))


def _repository_entries(directory: str) -> set[str]:
    return {name.casefold() for name in ("HEAD", "objects", "commondir") if os.path.lexists(f"{directory}/{name}")}


@contextmanager
def write_errors(path: str) -> Iterator[None]:
    """Turn errors of the operating system into WRITE_ERROR, except FileExistsError: the caller retries that one."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as problem:
        raise from_system(problem, path, ErrorCode.WRITE_ERROR) from None


def missing_directories(spot: Spot) -> tuple[str, ...]:
    return tuple(spot.root.join([*spot.parts, *spot.missing[: at + 1]]) for at in range(len(spot.missing)))
