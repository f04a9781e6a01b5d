"""Watch over guarded and hidden paths in all writable directories.

A directory is watched before it is listed, so nothing made in between is missed. Where events were lost, or the kernel
gives no watches, everything is listed again: a result may come late, but it is never wrong. Not thread-safe.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolreeve.core import guarded as table
from toolreeve.core.git_config import LARGEST
from toolreeve.core.guarded import Content, Guarded, GuardTable
from toolreeve.sandbox import inotify

MOST_DIRECTORIES = 50_000
_GENERATED = frozenset(
    "node_modules .venv venv site-packages target .tox .nox .cache .gradle .mypy_cache .pytest_cache .ruff_cache"
    " __pycache__ bower_components vendor .next .nuxt .terraform dist build .pnpm-store .yarn .bazel Pods".split()
)
_REPOSITORY_SIGNS = frozenset({"head", "objects", "commondir"})
_RETRY = frozenset({errno.ENOSPC, errno.ENOMEM})

Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What happened since the last look. All paths are absolute; links are told of as links.

    `appeared`: guarded and not there before, the outermost path of each. `changed`: guarded and replaced or written to;
    `former` has what a file that git reads held when it was last accepted. `gone`: guarded and no longer there.
    `hidden`: hidden, and made, replaced, moved or removed.
    """

    appeared: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    former: Mapping[str, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.appeared or self.changed or self.gone or self.hidden)


NO_CHANGES = Changes()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A guarded path that is there. `unit` is the outermost path that is guarded with it."""

    unit: str
    signature: Signature
    kind: Content | None = None
    content: bytes | None = None


class Watch:
    """`incomplete` says what is not watched, and why; it is empty when everything is. `version` changes whenever what
    is guarded or hidden does."""

    def __init__(self, guards: GuardTable, *, most_directories: int = MOST_DIRECTORIES) -> None:
        self._guards, self._most = guards, most_directories
        self._known: dict[str, _Known] = {}
        self._secrets: dict[str, Signature] = {}
        self._accepted: dict[str, bytes] = {}
        self._repositories: set[str] = set()
        self._paths: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._inotify: inotify.Inotify | None = None
        self._blind = ""
        self._cut = ""
        self.version = 0
        self._tally = _Tally()

    def start(self) -> None:
        """Walk all roots, once. Blocks for as long as that takes."""
        try:
            self._inotify = inotify.Inotify()
        except OSError as problem:
            self._blind = f"no inotify ({problem.strerror}): everything is listed after each command"
        for root in (*self._guards.roots, *self._guards.readable):
            self._scan(root)
        self._tally = _Tally()
        for path in self._known:
            self.accept(path)

    def accept(self, path: str, content: bytes | None = None) -> None:
        """From now on, this is what a file that git reads held before; without `content`, what it holds now.

        To be called only for what no command wrote, or for the very bytes that were judged.
        """
        known = self._known.get(path)
        if content is None and known is not None:
            content = known.content
        if content is not None:
            self._accepted[path] = content

    def doubt(self, paths: Iterable[str]) -> None:
        """What these files hold is no longer accepted."""
        for path in paths:
            self._accepted.pop(path, None)

    def known(self) -> Iterator[tuple[str, Signature, bytes | None]]:
        """Each guarded path that is there, what tells it from another, and its content when that was last accepted."""
        return ((path, known.signature, self._accepted.get(path)) for path, known in self._known.items())

    def since(self, before: Mapping[str, Sequence[int]]) -> Changes:
        """What differs from `known` at another time, maybe before a reboot: devices may be numbered anew."""
        appeared = self._known.keys() - before.keys()
        there = self._known.keys() & before.keys()
        changed = (path for path in there if self._known[path].signature[1:] != tuple(before[path][1:]))
        return Changes(appeared=self._outermost(appeared), changed=frozenset(changed))

    def fileno(self) -> int:
        """Readable when something happened; -1 where the machine gives no watches."""
        return -1 if self._inotify is None else self._inotify.descriptor

    @property
    def incomplete(self) -> str:
        return self._cut or self._blind

    @property
    def complete(self) -> bool:
        """Whether all directories were looked through."""
        return not self._cut

    def guarded(self) -> frozenset[str]:
        """What is there and guarded: the outermost path of each."""
        return frozenset(known.unit for known in self._known.values())

    def hidden(self) -> frozenset[str]:
        """What is there and hidden."""
        return frozenset(self._secrets)

    def settings(self) -> dict[str, tuple[int, bytes | None]]:
        """The files of settings of all repositories: their inode, and what they hold; None where it cannot be read."""
        found = {path: known for path, known in self._known.items() if known.kind == "config" and path == known.unit}
        return {path: (known.signature[1], known.content) for path, known in found.items()}

    def hooks(self) -> frozenset[str]:
        """The directories of repositories that have hooks which git would run."""
        inside = (known.unit for path, known in self._known.items() if known.kind == "hooks" and path != known.unit
                  and not path.endswith(".sample"))  # fmt: skip
        links = (path for path, known in self._known.items() if known.kind == "hooks" and len(known.signature) > 2)
        return frozenset(inside) | {path for path in links if path == self._known[path].unit}

    def judge(self, path: str) -> Guarded | None:
        """What guards an absolute path, as things are now: repositories are known by what is in them."""
        found = self._guards.guarded(path)
        if found is not None and found.repository is not None:
            return found if table.outermost(path, found.repository) in self._repositories else None
        return found or self._judge_in_repository(path)

    def _judge_in_repository(self, path: str) -> Guarded | None:
        around = os.path.dirname(path)
        for _ in range(3):
            if around in self._repositories:
                folded = [name.casefold() for name in path.split("/")[1:]]
                return table.find_in_repository(folded, around.count("/"))
            around = os.path.dirname(around)
        return None

    def drain(self) -> Changes:
        """What happened since the last call."""
        if self._blind or self._inotify is None:
            return self._rescan()
        data = self._inotify.read()
        if not data:
            return NO_CHANGES
        while data:
            for event in inotify.events(data):
                if event.mask & (inotify.OVERFLOW | inotify.UNMOUNT) or not self._take(event):
                    return self._rescan()
            data = self._inotify.read()
        return self._result()

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None

    def _take(self, event: inotify.Event) -> bool:
        """Whether the event could be followed; everything must be listed again otherwise."""
        path = self._paths.get(event.watch)
        if path is None:
            return True
        if event.mask & inotify.IGNORED:
            self._unwatch(event.watch)
            return not self._is_root(path)
        if event.mask & (inotify.DELETE_SELF | inotify.MOVE_SELF):
            return not self._is_root(path)
        if event.mask & (inotify.MODIFY | inotify.CLOSE_WRITE | inotify.ATTRIB):
            self._look(path, written=True)
            return True
        self._take_name(path, event)
        return True

    def _take_name(self, directory: str, event: inotify.Event) -> None:
        path = f"{directory.rstrip('/')}/{event.name}"
        folded = event.name.casefold()
        is_directory = event.mask & inotify.IS_DIRECTORY
        if is_directory:
            self._forget(path)
        if folded in _REPOSITORY_SIGNS:
            self._look_for_repository(directory)
        matters = self._guards.matters(folded) or self._is_special(directory)
        is_hidden = matters and self._look(path)
        if is_directory and event.mask & (inotify.CREATE | inotify.MOVED_TO) and not is_hidden:
            self._scan(path)

    def _look_for_repository(self, directory: str) -> None:
        """A directory that has become a repository, or is none any more, is listed anew."""
        try:
            names = {name.casefold() for name in os.listdir(directory)}
        except OSError:
            return
        if table.is_repository(names) != (directory in self._repositories):
            self._forget(directory)
            self._scan(directory)

    def _rescan(self) -> Changes:
        """List everything again and compare."""
        before = self._known
        secrets = self._secrets
        tally, self._tally = self._tally, _Tally()
        for watch in list(self._paths):
            self._drop(watch)
        self._known, self._secrets, self._repositories, self._cut = {}, {}, set(), ""
        if self._inotify is not None:
            while self._inotify.read():
                continue
        for root in (*self._guards.roots, *self._guards.readable):
            self._scan(root)
        self._tally = tally
        tally.compare(before, self._known, secrets.items() ^ self._secrets.items())
        return self._result()

    def _result(self) -> Changes:
        tally, self._tally = self._tally, _Tally()
        self.version += 1
        for path in tally.gone.keys() - self._known.keys():
            self._accepted.pop(path, None)
        known = self._known
        return Changes(
            appeared=self._outermost(tally.appeared),
            changed=frozenset(path for path in tally.changed if path in known),
            gone=frozenset(tally.gone.keys() - known.keys()),
            hidden=frozenset(tally.hidden),
            former={path: self._accepted[path] for path in tally.changed if path in self._accepted},
        )

    def _outermost(self, paths: Collection[str]) -> frozenset[str]:
        """Of those that are there: instead of all that a unit has in it, the unit, if it is among them."""
        known = self._known
        units = {known[path].unit for path in paths if path in known}
        outer = {unit if unit in paths else path for unit, path in _with_units(paths, known)}
        inner = {path for path in outer if any(path.startswith(f"{unit}/") for unit in units & outer)}
        return frozenset(outer - inner)

    def _scan(self, top: str) -> None:
        """Watch and list a directory and what is below it, shallow things first and generated ones last."""
        ahead = deque([top])
        later: deque[str] = deque()
        count = len(self._watches)
        while ahead or later:
            directory = (ahead or later).popleft()
            count += 1
            if count > self._most:
                self._cut = f"more than {self._most} directories: those further down are not watched"
                return
            for name in self._list(directory):
                below = f"{directory.rstrip('/')}/{name}"
                (later if name in _GENERATED else ahead).append(below)

    def _list(self, directory: str) -> Iterator[str]:
        """Look at the names in a directory; those that are directories to go on with."""
        self._watch(directory, inotify.NAMES)
        try:
            with os.scandir(directory) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        except OSError:
            return
        is_git = os.path.basename(directory).casefold() == ".git"
        if table.is_repository({name.casefold() for name, _ in entries}):
            self._repositories.add(directory)
        special = self._is_special(directory)
        for name, is_directory in entries:
            folded = name.casefold()
            path = f"{directory.rstrip('/')}/{name}"
            if (special or self._guards.matters(folded)) and self._look(path):
                continue
            bulk = folded in table.REPOSITORY_BULK and (is_git or directory in self._repositories)
            if is_directory and not bulk and not self._is_fixed(path):
                yield name

    def _is_special(self, directory: str) -> bool:
        """Whether more than the names in it decides about what is in a directory."""
        return (
            directory in self._repositories
            or os.path.dirname(directory) in self._repositories
            or directory in self._known
            or f"{directory}/".casefold().find("/.git/") >= 0
        )

    def _is_root(self, path: str) -> bool:
        return path in self._guards.roots or path in self._guards.readable

    def _is_fixed(self, path: str) -> bool:
        return path in self._guards.environment or path in self._guards.secret

    def _look(self, path: str, *, written: bool = False) -> bool:
        """Note what a path is now. Whether it is hidden, so that nothing in it needs to be looked at.

        A clock that ticks too slowly for two writes makes both look alike: `written` is known to differ.
        """
        try:
            found = os.lstat(path)
        except OSError:
            self._forget(path)
            return False
        if self._guards.hidden(path) is not None:
            self._note_secret(path, _signature(found))
            return True
        guard = self.judge(path)
        if guard is None or _is_ordinary(guard, path, found):
            return False
        unit = table.outermost(path, guard.depth)
        content = _read(path) if guard.content and stat.S_ISREG(found.st_mode) else None
        known = _Known(unit=unit, signature=_signature(found), kind=guard.content, content=content)
        self._tally.note(path, self._known.get(path), known, written=written)
        self._known[path] = known
        if stat.S_ISREG(found.st_mode):
            self._watch(path, inotify.CONTENT)
        return False

    def _note_secret(self, path: str, signature: Signature) -> None:
        if self._secrets.get(path) != signature:
            self._tally.hidden.add(path)
        self._secrets[path] = signature

    def _forget(self, top: str) -> None:
        """What was at a path and below it is there no more."""
        prefix = f"{top}/"
        for path in [path for path in self._known if path == top or path.startswith(prefix)]:
            self._tally.remove(path, self._known.pop(path))
        for path in [path for path in self._secrets if path == top or path.startswith(prefix)]:
            del self._secrets[path]
            self._tally.hidden.add(path)
        self._repositories -= {path for path in self._repositories if path == top or path.startswith(prefix)}
        if top in self._watches:
            for path in [path for path in self._watches if path == top or path.startswith(prefix)]:
                self._drop(self._watches[path])

    def _watch(self, path: str, mask: int) -> None:
        if self._inotify is None:
            return
        try:
            number = self._inotify.add(path, mask)
        except OSError as problem:
            if problem.errno in _RETRY:
                self._blind = "the kernel gives no more watches (fs.inotify.max_user_watches): everything is listed"
                self._blind += " after each command"
            return
        if (replaced := self._watches.get(path, number)) != number:
            self._drop(replaced)
        self._unwatch(number)  # a file has one watch, whichever of its names is known
        self._paths[number] = path
        self._watches[path] = number

    def _unwatch(self, number: int) -> None:
        path = self._paths.pop(number, None)
        if path is not None and self._watches.get(path) == number:
            del self._watches[path]

    def _drop(self, number: int) -> None:
        self._unwatch(number)
        if self._inotify is not None:
            self._inotify.remove(number)


class _Tally:
    """What one look found, kept so that what came and went in between is not told of."""

    def __init__(self) -> None:
        self.appeared: set[str] = set()
        self.changed: set[str] = set()
        self.gone: dict[str, _Known] = {}
        self.hidden: set[str] = set()

    def note(self, path: str, before: _Known | None, now: _Known, *, written: bool = False) -> None:
        before = before or self.gone.pop(path, None)
        if before is None:
            self.appeared.add(path)
            return
        same = before.signature == now.signature and before.content == now.content and not written
        if same or path in self.appeared:
            return
        self.changed.add(path)

    def remove(self, path: str, before: _Known) -> None:
        if path in self.appeared:
            self.appeared.discard(path)
        else:
            self.gone[path] = before

    def compare(
        self,
        before: Mapping[str, _Known],
        now: Mapping[str, _Known],
        secrets: Iterable[tuple[str, Signature]],
    ) -> None:
        """Add what a new listing shows to what was noted of events before the others were lost."""
        for path in before.keys() - now.keys():
            self.remove(path, before[path])
        for path, known in now.items():
            self.note(path, before.get(path), known)
        self.hidden |= {path for path, _ in secrets}


def _with_units(paths: Iterable[str], known: Mapping[str, _Known]) -> Iterator[tuple[str, str]]:
    return ((known[path].unit, path) for path in paths if path in known)


def _is_ordinary(guard: Guarded, path: str, found: os.stat_result) -> bool:
    """A directory called `.git` is judged by what is in it."""
    is_directory = stat.S_ISDIR(found.st_mode)
    return is_directory and guard.content == "pointer" and guard.depth == path.count("/")


def _signature(found: os.stat_result) -> Signature:
    if stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, LARGEST + 1)
    finally:
        os.close(descriptor)
    return data if len(data) <= LARGEST else None
