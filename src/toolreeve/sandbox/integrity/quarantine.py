"""Quarantine: harmful paths that a command left are moved away.

Each path goes to its own directory below the state directory, with a manifest; only a person releases it. It is moved
by descriptor, through no link. A path that could not be moved is reported, never skipped.
"""

import contextlib
import errno
import json
import logging
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from toolreeve.core.guarded_paths import Guarded, GuardTable, is_within
from toolreeve.core.secrets.paths import NEARBY
from toolreeve.core.visible import one_line
from toolreeve.sandbox.integrity import beneath
from toolreeve.sandbox.integrity.assessment import Harm, find_harm
from toolreeve.sandbox.integrity.changes import Changes
from toolreeve.sandbox.integrity.contents import ContentReading, describe
from toolreeve.sandbox.integrity.watch import Watch

logger = logging.getLogger(__name__)

MOST_COPIED = 256 << 20
"""The most bytes in the quarantine that were copied from other file systems."""
_MANIFEST = "manifest.json"
_CONTENT = "content"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedPath:
    """The manifest of one quarantined path. `kept` is its location if it was too large to be copied to the quarantine.
    `stamp` detects changes; `exact`: a copy has the same stamp."""

    id: str
    path: str
    root: str
    kind: str
    reason: str
    call: str
    time: float
    mode: int
    owner: tuple[int, int]
    sha256: Mapping[str, str] = field(default_factory=dict)
    link: str | None = None
    kept: str | None = None
    restored: bool = False
    stamp: str = ""
    exact: bool = False
    copied: int = 0


class Suspect(NamedTuple):
    """A path to assess. `former` is its content before the command, where git reads it."""

    path: str
    root: str
    guard: Guarded
    former: bytes | None


class QuarantineOutcome(NamedTuple):
    """What was done, a sentence each, and the content of files that git reads which was found harmless."""

    notices: tuple[str, ...]
    accepted: tuple[tuple[str, bytes], ...]


class Quarantine:
    """`directory` need not exist. Only its owner can read it."""

    def __init__(self, directory: str, guards: GuardTable, *, most_copied: int = MOST_COPIED) -> None:
        self._directory = directory
        self._guards = guards
        self._most_copied = most_copied
        self._copied: int | None = None

    @property
    def baselines(self) -> str:
        """The directory of the baselines of all runtimes with this state directory."""
        return os.path.join(self._directory, ".baselines")

    def settle(self, watch: Watch, changes: Changes, *, call: str = "") -> tuple[str, ...]:
        """Quarantine what is harmful among the changes. Returns what was done, a sentence each. Blocks."""
        outcome = self.take(self.find_suspects(watch, changes), call)
        for path, content in outcome.accepted:
            watch.accept(path, content)
        return outcome.notices

    def find_suspects(self, watch: Watch, changes: Changes) -> list[Suspect]:
        found: list[Suspect] = []
        for path in sorted(changes.appeared | changes.changed):
            guard = watch.guard_of(path)
            root = self._guards.root_of(path)
            if guard is not None and root in self._guards.roots:
                found.append(Suspect(path, root, guard, changes.former.get(path)))
        return found

    def take(self, suspects: Iterable[Suspect], call: str = "") -> QuarantineOutcome:
        """Quarantine those that are harmful. Blocks, and may run in a thread, one at a time. Whatever fails for one
        path is reported; the others are settled all the same."""
        notices: list[str] = []
        accepted: list[tuple[str, bytes]] = []
        reading = ContentReading()
        for suspect in suspects:
            try:
                notices += self._settle(suspect, accepted, reading, call)
            except Exception as problem:
                logger.exception("a path that a command left could not be settled")
                why = f"{type(problem).__name__}. {suspect.guard.by}: remove it yourself"
                notices.append(f"{self._shown(suspect.path)} could NOT be quarantined: {why}")
        return QuarantineOutcome(tuple(notices), tuple(accepted))

    def _settle(
        self, suspect: Suspect, accepted: list[tuple[str, bytes]], reading: ContentReading, call: str
    ) -> Iterator[str]:
        path, root, guard, former = suspect

        def accept(content: bytes) -> None:
            accepted.append((path, content))

        try:
            harms = list(find_harm(path, guard, self._guards, root, former, accept))
        except OSError as problem:
            yield f"{self._shown(path)} could not be inspected: {problem.strerror}. {guard.by}: remove it yourself"
            return
        for harm in harms:
            yield self._take(root, harm, former, reading, call)

    def _take(self, root: str, harm: Harm, former: bytes | None, reading: ContentReading, call: str) -> str:
        path, why = harm
        try:
            held = self._move(root, path, why, former, reading, call)
        except OSError as problem:
            return f"{self._shown(path)} could NOT be quarantined: {problem.strerror}. {why}: remove it yourself"
        note = ""
        if held.restored:
            note = "; its former content is restored"
        elif _is_in_work_tree(path, root):
            note = "; if git tracks it, git shows it as deleted until you release it"
        if held.kept is not None:
            note += f"; too large to be copied to the state directory, it is in {self._shown(held.kept)}"
        return f"quarantined {self._shown(path)}: {why}{note} (toolreeve quarantine release {held.id})"

    def _shown(self, path: str) -> str:
        for root in self._guards.roots:
            if is_within(path, root):
                return one_line(path[len(root.rstrip("/")) + 1 :])
        return one_line(path)

    def _move(
        self, root: str, path: str, why: str, former: bytes | None, reading: ContentReading, call: str
    ) -> QuarantinedPath:
        name = secrets.token_hex(4)
        folder = Path(self._directory, name)
        folder.mkdir(mode=0o700, parents=True)
        room = beneath.Room(max(0, self._most_copied - self._sum_copied()))
        size = room.size
        try:
            with beneath.parent(root, path) as (directory, last), _open(folder) as target:
                facts = _facts(directory, last)
                kept = _move_away(directory, path, target, room, root, f"{NEARBY}{name}")
                restored = former is not None and _restore(directory, last, former, facts)
        except BaseException:
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise
        copied = size - room.size if kept is None else 0
        self._copied = self._sum_copied() + copied
        held = QuarantinedPath(
            id=name, path=path, root=root, reason=why, call=call, time=time.time(), kept=kept, restored=restored,
            copied=copied, **facts,
        )  # fmt: skip
        held = replace(held, **self._describe(held, reading))
        (folder / _MANIFEST).write_bytes(json.dumps(asdict(held), indent=1).encode())
        return held

    def _sum_copied(self) -> int:
        if self._copied is None:
            self._copied = sum(held.copied for held in self.list())
        return self._copied

    def _describe(self, held: QuarantinedPath, reading: ContentReading) -> dict[str, Any]:
        origin, name = os.path.split(self.content(held))
        with contextlib.suppress(OSError), _open(Path(origin)) as directory:  # a pipe may not have been copied
            return asdict(describe(directory, name, reading))
        return {}

    def list(self) -> list[QuarantinedPath]:
        """The oldest first."""
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        found = (self.find(name) for name in names)
        return sorted((held for held in found if held is not None), key=lambda held: held.time)

    def find(self, name: str) -> QuarantinedPath | None:
        """By its id."""
        if not name.isalnum():
            return None
        try:
            data = json.loads(Path(self._directory, name, _MANIFEST).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        return QuarantinedPath(**{**data, "owner": tuple(data["owner"])})

    def content(self, held: QuarantinedPath) -> str:
        """The path of its content."""
        return held.kept or os.path.join(self._directory, held.id, _CONTENT)

    def release(self, held: QuarantinedPath) -> None:
        """Move it back to its path, if it is unchanged. Raises FileExistsError if the path exists now, and OSError."""
        source, name = os.path.split(self.content(held))
        with beneath.parent(held.root, held.path) as (directory, last), _open(Path(source)) as origin:
            if _exists(directory, last):
                raise FileExistsError(errno.EEXIST, "the path exists again: move it away, then release")
            if not _exists(origin, name):
                raise FileNotFoundError(errno.ENOENT, "it was not a file and has no content")
            self._check(held, origin, name)
            if held.exact:
                self._release_copy(held, origin, name, directory, last)
            else:
                beneath.move(origin, name, directory, last, beneath.Room(self._most_copied))
        self._discard(held)

    def _check(self, held: QuarantinedPath, directory: int, name: str) -> None:
        if not held.stamp:
            raise OSError(errno.EFBIG, f"it is too large to be compared; take it from {self.content(held)} yourself")
        if describe(directory, name, ContentReading(only=held.sha256)).stamp != held.stamp:
            raise OSError(errno.ESTALE, f"{self.content(held)} was changed since it was quarantined")

    def _release_copy(self, held: QuarantinedPath, origin: int, name: str, directory: int, last: str) -> None:
        """A copy, because a program may still have a file of the original open."""
        temporary = f"{NEARBY}{held.id}~"
        try:
            beneath.copy(origin, name, directory, temporary, beneath.Room(MOST_COPIED, entries=20_000))
            self._check(held, directory, temporary)
            beneath.rename(directory, temporary, directory, last)
        except beneath.TooLarge:
            raise OSError(errno.EFBIG, f"it has grown; take it from {self.content(held)} yourself") from None
        finally:
            if _exists(directory, temporary):
                beneath.remove(directory, temporary)
        beneath.remove(origin, name)

    def delete(self, held: QuarantinedPath) -> None:
        """Remove it for good."""
        with _open(Path(os.path.dirname(self.content(held)))) as origin:
            if _exists(origin, os.path.basename(self.content(held))):
                beneath.remove(origin, os.path.basename(self.content(held)))
        self._discard(held)

    def _discard(self, held: QuarantinedPath) -> None:
        folder = Path(self._directory, held.id)
        (folder / _MANIFEST).unlink()
        folder.rmdir()
        self._copied = None
        if held.kept is not None:
            os.rmdir(os.path.dirname(held.kept))


@contextlib.contextmanager
def _open(directory: Path) -> Iterator[int]:
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _exists(directory: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _facts(directory: int, name: str) -> dict[str, Any]:
    found = os.lstat(name, dir_fd=directory)
    facts: dict[str, Any] = {"kind": _kind(found.st_mode), "mode": found.st_mode, "owner": (found.st_uid, found.st_gid)}
    if stat.S_ISLNK(found.st_mode):
        facts["link"] = os.readlink(name, dir_fd=directory)
    return facts


def _kind(mode: int) -> str:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(mode), "other")


def _move_away(directory: int, path: str, target: int, room: beneath.Room, root: str, nearby: str) -> str | None:
    """Returns its location if it is too large to be copied to another file system: in a directory that is hidden from
    commands, at the root, or beside it where that is yet another file system."""
    name = os.path.basename(path)
    try:
        beneath.move(directory, name, target, _CONTENT, room)
    except beneath.TooLarge:
        is_beside = os.fstat(directory).st_dev != os.stat(root).st_dev
        with _open(Path(root)) as top:
            outer = directory if is_beside else top
            os.mkdir(nearby, 0o700, dir_fd=outer)
            with beneath.listed(outer, nearby) as hidden:
                beneath.rename(directory, name, hidden, _CONTENT)
        return os.path.join(os.path.dirname(path) if is_beside else root, nearby, _CONTENT)
    return None


def _restore(directory: int, name: str, former: bytes, facts: Mapping[str, Any]) -> bool:
    match facts["kind"]:
        case "file":
            beneath.write_new(directory, name, former, facts["mode"], facts["owner"])
        case "link":
            os.symlink(former, name, dir_fd=directory)
        case _:
            return False
    return True


def _is_in_work_tree(path: str, root: str) -> bool:
    """Whether a path lies in the work tree of a repository, not in the repository itself."""
    around = os.path.dirname(path)
    while is_within(around, root):
        if os.path.basename(around).casefold() == ".git":
            return False
        if os.path.lexists(f"{around}/.git"):
            return True
        around = os.path.dirname(around)
    return False
