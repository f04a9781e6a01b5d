"""Quarantine: what a command left for the host to obey is put aside.

Each path goes to a directory of its own below the state directory, with a manifest; only a person brings it back. It is
taken by descriptor, through no link. What could not be taken is told as such, never passed over.
"""

import contextlib
import errno
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from toolreeve.core.guarded import GuardTable, is_within
from toolreeve.core.private import write_private
from toolreeve.core.visible import one_line
from toolreeve.sandbox import beneath
from toolreeve.sandbox.changes import Changes
from toolreeve.sandbox.harm import Harm, find_harm
from toolreeve.sandbox.watch import Watch

MOST_COPIED = 256 << 20
_MANIFEST = "manifest.json"
_CONTENT = "content"
_MOST_HASHED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The manifest of one quarantined path. `kept` is where it lies if it was too large to be moved there."""

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


class Quarantine:
    """`directory` need not exist. All that is in it is for its owner's eyes alone."""

    def __init__(self, directory: str, guards: GuardTable) -> None:
        self._directory, self._guards = directory, guards

    @property
    def baselines(self) -> str:
        """Where the baselines of all runtimes with this state directory lie."""
        return os.path.join(self._directory, ".baselines")

    def settle(
        self, watch: Watch, changes: Changes, *, protected: Iterable[str] = (), call: str = ""
    ) -> tuple[str, ...]:
        """Put aside what does harm among the changes, and say what was done, a sentence each. Blocks.

        `protected` are the paths that no command could have changed: what happened there, the host did.
        """
        safe = tuple(protected)
        told: list[str] = []
        for path in sorted(changes.appeared | changes.changed):
            if not any(is_within(path, each) for each in safe):
                told += self._settle(watch, path, changes.former.get(path), call)
        return tuple(told)

    def _settle(self, watch: Watch, path: str, former: bytes | None, call: str) -> Iterator[str]:
        guard = watch.judge(path)
        root = self._guards.root_of(path)
        if guard is None or root not in self._guards.roots:
            return
        try:
            harms = list(find_harm(path, guard, self._guards, root, former, partial(watch.accept, path)))
        except OSError as problem:
            yield f"{self._shown(path)} could not be looked at: {problem.strerror}. {guard.by}: remove it yourself"
            return
        for harm in harms:
            yield self._take(root, harm, former, call)

    def _take(self, root: str, harm: Harm, former: bytes | None, call: str) -> str:
        path, why = harm
        try:
            held = self._move(root, path, why, former, call)
        except OSError as problem:
            return f"{self._shown(path)} could NOT be quarantined: {problem.strerror}. {why}: remove it yourself"
        again = "; what it held before is back" if held.restored else ""
        return f"quarantined {self._shown(path)}: {why}{again} (toolreeve quarantine release {held.id})"

    def _shown(self, path: str) -> str:
        for root in self._guards.roots:
            if is_within(path, root):
                return one_line(path[len(root.rstrip("/")) + 1 :])
        return one_line(path)

    def _move(self, root: str, path: str, why: str, former: bytes | None, call: str) -> Held:
        name = secrets.token_hex(4)
        place = Path(self._directory, name)
        place.mkdir(mode=0o700, parents=True)
        try:
            with beneath.parent(root, path) as (directory, last), _open(place) as target:
                facts = _describe(directory, last)
                kept = _put_aside(directory, last, target, name)
                restored = former is not None and _restore(directory, last, former, facts)
        except BaseException:
            with contextlib.suppress(OSError):
                place.rmdir()
            raise
        where = None if kept is None else os.path.join(os.path.dirname(path), kept)
        held = Held(
            id=name, path=path, root=root, reason=why, call=call, time=time.time(), kept=where, restored=restored,
            **facts,
        )  # fmt: skip
        write_private(place / _MANIFEST, json.dumps(asdict(held), indent=1).encode())
        return held

    def list(self) -> list[Held]:
        """The oldest first."""
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        found = (self.find(name) for name in names)
        return sorted((held for held in found if held is not None), key=lambda held: held.time)

    def find(self, name: str) -> Held | None:
        """By its id."""
        if not name.isalnum():
            return None
        try:
            data = json.loads(Path(self._directory, name, _MANIFEST).read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Held(**{**data, "owner": tuple(data["owner"])})

    def content(self, held: Held) -> str:
        """Where it lies."""
        return held.kept or os.path.join(self._directory, held.id, _CONTENT)

    def release(self, held: Held) -> None:
        """Bring it back to where it was. Raises FileExistsError if something stands there now, and OSError."""
        source = os.path.dirname(self.content(held))
        with beneath.parent(held.root, held.path) as (directory, last), _open(Path(source)) as origin:
            if _exists(directory, last):
                raise FileExistsError(errno.EEXIST, "something stands there now")
            if not _exists(origin, os.path.basename(self.content(held))):
                raise FileNotFoundError(errno.ENOENT, "it was no file and had no content to keep")
            beneath.move(origin, os.path.basename(self.content(held)), directory, last, most=MOST_COPIED)
        self._discard(held)

    def delete(self, held: Held) -> None:
        """Remove it for good."""
        with _open(Path(os.path.dirname(self.content(held)))) as origin:
            if _exists(origin, os.path.basename(self.content(held))):
                beneath.remove(origin, os.path.basename(self.content(held)))
        self._discard(held)

    def _discard(self, held: Held) -> None:
        place = Path(self._directory, held.id)
        (place / _MANIFEST).unlink()
        place.rmdir()


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


def _describe(directory: int, name: str) -> dict[str, Any]:
    found = os.lstat(name, dir_fd=directory)
    facts: dict[str, Any] = {"kind": _kind(found.st_mode), "mode": found.st_mode, "owner": (found.st_uid, found.st_gid)}
    if stat.S_ISLNK(found.st_mode):
        facts["link"] = os.readlink(name, dir_fd=directory)
    hashes: dict[str, str] = {}
    with contextlib.suppress(OSError):  # what cannot be read is moved all the same
        hashes.update(_hashes(directory, name, "."))
    return {**facts, "sha256": hashes}


def _kind(mode: int) -> str:
    kinds = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(mode), "other")


def _hashes(directory: int, name: str, shown: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    found = os.lstat(name, dir_fd=directory)
    if stat.S_ISREG(found.st_mode):
        data = beneath.read(directory, name, MOST_COPIED)
        if data is not None:
            yield shown, hashlib.sha256(data).hexdigest()
    elif stat.S_ISDIR(found.st_mode) and depth < 32:
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        try:
            for each in sorted(os.listdir(below))[:_MOST_HASHED]:
                yield from _hashes(below, each, f"{shown}/{each}".removeprefix("./"), depth + 1)
        finally:
            os.close(below)


def _put_aside(directory: int, name: str, target: int, held: str) -> str | None:
    """The name that it has in its own directory now, if it is too large to be copied to another file system."""
    try:
        beneath.move(directory, name, target, _CONTENT, most=MOST_COPIED)
    except beneath.TooLarge:
        kept = f"{name}.quarantined-{held}"
        os.rename(name, kept, src_dir_fd=directory, dst_dir_fd=directory)
        return kept
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
