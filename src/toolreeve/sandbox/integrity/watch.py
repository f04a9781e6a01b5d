"""Watch over guarded and hidden paths in all writable directories.

A directory is watched before it is listed, so nothing made in between is missed. Where events were lost, or the kernel
has no watches left, everything is listed again: a result may be late, but never wrong. Not thread-safe.
"""

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import PurePosixPath

from toolreeve.core import guarded_paths as table
from toolreeve.core.git_config import LARGEST
from toolreeve.core.guarded_paths import Guarded, GuardTable
from toolreeve.sandbox.integrity import beneath
from toolreeve.sandbox.integrity.changes import NO_CHANGES, Changes, KnownState, Signature, Tally
from toolreeve.sandbox.integrity.git_references import GitReferences
from toolreeve.sandbox.integrity.inventory import Inventory
from toolreeve.sandbox.integrity.path_table import PathTable, is_in
from toolreeve.sandbox.integrity.repositories import Repositories
from toolreeve.sandbox.kernel import inotify

MOST_DIRECTORIES = 100_000
_GENERATED = frozenset(
    "node_modules .venv venv site-packages target .tox .nox .cache .gradle .mypy_cache .pytest_cache .ruff_cache"
    " __pycache__ bower_components vendor .next .nuxt .terraform dist build .pnpm-store .yarn .bazel Pods".split()
)
_LAST = _GENERATED | table.REPOSITORY_BULK
_REPOSITORY_SIGNS = frozenset({"head", "objects", "commondir"})


class Watch(Inventory):
    """The inventory, kept current. `incomplete` says what is not watched, and why; it is empty when everything is.
    `version` changes whenever the guarded or hidden paths do."""

    def __init__(self, guards: GuardTable, *, most_directories: int = MOST_DIRECTORIES) -> None:
        super().__init__()
        self._guards = guards
        self._most = most_directories
        self._repositories = Repositories(guards)
        self._locked: set[str] = set()
        self._references = GitReferences(guards)
        self._watches = inotify.Watches()
        self._closed_off: set[str] = set()
        self._first_walk: frozenset[str] = frozenset()
        self.version = 0
        self._tally = Tally()
        self._identities: dict[tuple[int, int], str] = {}

    def start(self) -> None:
        """Walk all roots, once. Blocks for as long as that takes."""
        self._watches.open()
        walked = self._scan_roots()
        self._first_walk = frozenset(walked)
        with self.unlocked():
            self._tally = Tally()
        for path in list(self._known):
            self.accept(path)

    def accept(self, path: str, content: bytes | None = None) -> frozenset[str]:
        """From now on, this content of a file that git reads counts as unsuspicious; without `content`, the current
        one. Returns existing paths that are guarded from now on, because these settings refer to them.

        To be called only for what no command wrote, or for the very bytes that were assessed.
        """
        known = self._known.get(path)
        if content is None and known is not None:
            content = known.content
        if content is None:
            return frozenset()
        self._accepted[path] = content
        if known is None or known.kind != "config":
            return frozenset()
        return self._follow(path, content)

    def _follow(self, settings: str, content: bytes) -> frozenset[str]:
        """Add the paths that settings refer to. That they exist already is no change."""
        linked = self._known.below(f"{os.path.dirname(settings)}/worktrees")
        pointers = [each for each in linked if each.endswith("/gitdir")]
        trees = [os.path.dirname((self._known[each].content or b"").decode(errors="replace")) for each in pointers]
        referenced = self._references.update(settings, content, filter(os.path.isabs, trees))
        tally, self._tally = self._tally, Tally()
        for path in referenced:
            self._inspect(path)
            if os.path.isdir(path) and not os.path.islink(path):
                self._scan(path)
        found = self._tally.appeared
        self._tally = tally
        if referenced:
            self.version += 1
        units = {self._known[path].unit for path in found if path in self._known}
        return frozenset(units).union(*map(self.accept, found))

    @property
    def has_locked(self) -> bool:
        """Whether there are directories whose modes keep their owner out."""
        return bool(self._locked)

    @contextmanager
    def unlocked(self) -> Iterator[None]:
        """Look into the directories whose modes keep their owner out, which a command of the same user can change; they
        stay open until the end."""
        tried: set[str] = set()
        with ExitStack() as stack:
            while ahead := self._locked - tried:
                path = min(ahead, key=len)
                tried.add(path)
                self._locked.discard(path)
                self._scan_locked(path, stack)
            yield

    def _scan_locked(self, path: str, stack: ExitStack) -> None:
        root = self._guards.root_of(path)
        is_open = os.access(path, os.R_OK | os.X_OK, effective_ids=True)
        if root not in self._guards.roots:
            return
        if not is_open:
            try:
                stack.enter_context(beneath.unlocked(root, path))
            except OSError:  # it is gone
                return
            self._locked.add(path)
        self._scan(path)

    def revoke(self, paths: Iterable[str]) -> None:
        """The content of these files is no longer accepted."""
        for path in paths:
            self._accepted.pop(path, None)

    def fileno(self) -> int:
        """Readable when an event is pending; -1 where this machine has no inotify."""
        return self._watches.fileno()

    @property
    def incomplete(self) -> str:
        return self._truncated or self._watches.shortage

    def guard_of(self, path: str) -> Guarded | None:
        """What guards an absolute path now: repositories are recognized by their content."""
        return self._repositories.guard_of(path, self._references)

    def history(self) -> tuple[str, ...]:
        """Where the repositories keep what files held, whatever the names of those."""
        return self._repositories.stores()

    def drain(self, most: int = inotify.MOST_QUEUED) -> Changes:
        """The changes since the last call; with a smaller `most`, a part of them. What commands go on doing meanwhile
        is left for the next call."""
        has_room = bool(self._closed_off) and self._watches.directories + len(self._closed_off) <= self._most
        if self._watches.shortage or has_room:
            return self._rescan()
        taken = 0
        while taken < most and (data := self._watches.read()):
            for event in inotify.events(data):
                if not self._can_follow(event):
                    return self._rescan()
                taken += 1
        return self._take_changes() if taken or self._tally else NO_CHANGES

    def close(self) -> None:
        self._watches.close()

    def _can_follow(self, event: inotify.InotifyEvent) -> bool:
        """An error must not lose the events behind it."""
        if event.mask & (inotify.OVERFLOW | inotify.UNMOUNT):
            return False
        try:
            return self._handle_event(event)
        except OSError:
            return False

    def _handle_event(self, event: inotify.InotifyEvent) -> bool:
        """False where everything must be listed again."""
        path = self._watches.path(event.watch)
        if path is None:
            return True
        if event.mask & inotify.IGNORED:
            self._watches.forget(event.watch)
            return not self._is_root(path)
        if event.mask & (inotify.DELETE_SELF | inotify.MOVE_SELF):
            return not self._is_root(path)
        if event.mask & (inotify.MODIFY | inotify.CLOSE_WRITE | inotify.ATTRIB):
            self._inspect(path, is_written=True)
            return True
        self._handle_name(path, event)
        return True

    def _handle_name(self, directory: str, event: inotify.InotifyEvent) -> None:
        path = f"{directory.rstrip('/')}/{event.name}"
        is_directory = event.mask & inotify.IS_DIRECTORY
        if is_directory:
            self._forget(path)
        if event.name.casefold() in _REPOSITORY_SIGNS:
            self._look_for_repository(directory)
        if self._relevance_in(directory)(path) or _is_channel(path):
            self._inspect(path)
        elif path in self._secrets or path in self._sensitive:
            self._forget(path)
        if self._identities and not is_directory:
            self._follow_link(path)
        if is_directory and event.mask & (inotify.CREATE | inotify.MOVED_TO):
            listed = self._scan(path)
            if self._identities:
                self._follow_links_in(listed)

    def _look_for_repository(self, directory: str) -> None:
        """A directory that has become a repository is listed anew."""
        try:
            names = {name.casefold() for name in os.listdir(directory)}
        except OSError:
            return
        if self._repositories.add_if_one(directory, names):
            self._forget(directory)
            self._scan(directory)

    def _rescan(self) -> Changes:
        """List everything again and compare."""
        before = self._known
        secrets = {*self._secrets.items(), *self._sensitive.items()}
        tally, self._tally = self._tally, Tally()
        self._watches.remove_all()
        self._known = PathTable()
        self._secrets = PathTable()
        self._sensitive = PathTable()
        self._repositories = self._repositories.anew()
        self._truncated = ""
        self._closed_off = set()
        self._scan_roots()
        self._tally = tally
        tally.compare(before, self._known, secrets ^ {*self._secrets.items(), *self._sensitive.items()})
        return self._take_changes()

    def _take_changes(self) -> Changes:
        tally, self._tally = self._tally, Tally()
        self.version += 1
        for path in tally.gone.keys() - self._known.keys():
            if self._accepted.pop(path, None) is not None:
                self._references.update(path, None)
        known = self._known
        return Changes(
            appeared=self._outermost(tally.appeared),
            changed=frozenset(path for path in tally.changed if path in known),
            gone=frozenset(tally.gone.keys() - known.keys()),
            hidden=frozenset(tally.hidden),
            former={path: self._accepted[path] for path in tally.changed if path in self._accepted},
        )

    def _scan_roots(self) -> list[str]:
        """Where a secret file has several names, the others are looked for once all secrets are known."""
        self._identities = {}
        listed = [path for root in (*self._guards.roots, *self._guards.readable) for path in self._scan(root)]
        covered = {*self._secrets, *self._sensitive} - self._closed_off
        names = [self._follow_link(path) for each in covered for path in _files_below(each)]
        if any(count > 1 for count in names):
            self._follow_links_in(listed)
        return listed

    def _follow_links_in(self, directories: Iterable[str]) -> None:
        for directory in directories:
            if self._table_of(directory) is None:
                for path in _files_in(directory):
                    self._follow_link(path)

    def _follow_link(self, path: str) -> int:
        """A further name of a secret file (a hard link) is as secret as the one that tells. Returns how many names the
        file has; 0 for what is not a file."""
        found = _find_file(path)
        if found is None:
            return 0
        identity = found.st_dev, found.st_ino
        if self._table_of(path) is not None:
            self._identities[identity] = path
        elif found.st_nlink > 1 and (secret := self._identities.get(identity)) is not None:
            same = _find_file(secret)
            noted = self._table_of(secret)
            if noted is not None and same is not None and identity == (same.st_dev, same.st_ino):
                self._note_secret(noted, path, _signature(found))
        return found.st_nlink

    def _table_of(self, path: str) -> PathTable[Signature] | None:
        """The table that hides a path, or a directory around it."""
        return next((each for each in (self._secrets, self._sensitive) if is_in(path, each)), None)

    def _scan(self, top: str) -> list[str]:
        """Watch and list a directory and all below it, shallow ones first and generated ones last. Returns those that
        were listed."""
        listed: list[str] = []
        ahead = deque([top])
        later: deque[str] = deque()
        count = self._watches.directories
        while ahead or later:
            directory = (ahead or later).popleft()
            count += 1
            if count > self._most:
                self._close_off((directory, *ahead, *later))
                break
            listed.append(directory)
            for name in self._list(directory):
                below = f"{directory.rstrip('/')}/{name}"
                (ahead if self._is_first(below) else later).append(below)
        return listed

    def _is_first(self, directory: str) -> bool:
        """Directories of the first walk come before those that commands may have made since."""
        if self._first_walk and directory not in self._first_walk:
            return False
        return os.path.basename(directory) not in _LAST

    def _close_off(self, directories: Iterable[str]) -> None:
        """Directories that are not listed are hidden from commands: nothing in them can be read or changed."""
        self._truncated = f"more than {self._most} directories: those further down are hidden from commands"
        for directory in directories:
            try:
                self._note_secret(self._secrets, directory, _signature(os.lstat(directory)))
            except OSError:  # it is gone
                continue
            self._closed_off.add(directory)

    def _list(self, directory: str) -> Iterator[str]:
        """Inspect the names in a directory; yields the directories to go on with."""
        self._watches.add(directory, inotify.NAMES)
        try:
            with os.scandir(directory) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False), _is_special(entry)) for entry in found]
        except PermissionError:
            self._locked.add(directory)
            return
        except OSError:
            return
        self._repositories.add_if_one(directory, {name.casefold() for name, _, _ in entries})
        is_relevant = self._relevance_in(directory)
        for name, is_directory, is_special in entries:
            path = f"{directory.rstrip('/')}/{name}"
            if is_special or is_relevant(path):
                self._inspect(path)
            if is_directory and not self._is_fixed(path):
                yield name

    def _relevance_in(self, directory: str) -> Callable[[str], bool]:
        """A test whether a path in the directory must be inspected."""
        if self._repositories.has_bulk(directory):
            return lambda path: self._is_named(path) or path in self._known or os.path.islink(path)
        if directory in self._known or self._repositories.is_near(directory):
            return lambda _: True
        return self._is_named

    def _is_named(self, path: str) -> bool:
        name = os.path.basename(path).casefold()
        return self._guards.matters(name) or path in self._references or self._guards.is_unread(path)

    def _is_root(self, path: str) -> bool:
        return path in self._guards.roots or path in self._guards.readable

    def _is_fixed(self, path: str) -> bool:
        return path in self._guards.environment or path in self._guards.secret

    def _inspect(self, path: str, *, is_written: bool = False) -> None:
        """Note the state of a path: whether it is hidden and whether it is guarded are two questions.

        Two writes within one tick of the clock look alike: `is_written` marks a known difference.
        """
        try:
            found = os.lstat(path)
        except PermissionError:
            self._locked.add(os.path.dirname(path))
            return
        except OSError:
            self._forget(path)
            return
        guard = self.guard_of(path)
        if self._is_hidden(path, guard):
            self._note_secret(self._secrets, path, _signature(found))
        elif self._is_sensitive(path, found) and self._needs_cover(path, guard):
            self._note_secret(self._sensitive, path, _signature(found))
        if guard is None or _is_ordinary(guard, path, found):
            if path in self._known:  # no longer a link
                self._tally.remove(path, self._known.pop(path))
            return
        unit = table.outermost(path, guard.depth)
        content = _read(path, guard, found)
        known = KnownState(unit=unit, signature=_signature(found), kind=guard.content, content=content)
        self._tally.note(path, self._known.get(path), known, is_written=is_written)
        self._known[path] = known
        if stat.S_ISREG(found.st_mode):
            self._watches.add(path, inotify.CONTENT)

    def _is_hidden(self, path: str, guard: Guarded | None) -> bool:
        """Whether it needs a cover of its own. A branch may have the name of a secret file."""
        return self._guards.hidden(path) is not None and self._needs_cover(path, guard)

    def _is_sensitive(self, path: str, found: os.stat_result) -> bool:
        """Through a pipe or a socket a command that only looks could write to a program of the host. What lies in a
        sensitive directory needs no cover of its own."""
        is_channel = stat.S_ISFIFO(found.st_mode) or stat.S_ISSOCK(found.st_mode)
        if not is_channel and not self._guards.sensitive(path, is_folder=_is_folder(path, found)):
            return False
        return not (self._sensitive and any(str(above) in self._sensitive for above in PurePosixPath(path).parents))

    def _needs_cover(self, path: str, guard: Guarded | None) -> bool:
        directory = os.path.dirname(path)
        is_branch = self._repositories.has_bulk(directory) and "/.git/" in directory.casefold()
        is_link = guard is not None and guard.content == "link"
        return not (is_branch or is_link or self._is_out_of_reach(path))

    def _note_secret(self, noted: PathTable[Signature], path: str, signature: Signature) -> None:
        if noted.get(path) != signature:
            self._tally.hidden.add(path)
        noted[path] = signature

    def _forget(self, top: str) -> None:
        """A path and all below it no longer exist."""
        for path in self._known.below(top):
            self._tally.remove(path, self._known.pop(path))
        for noted in (self._secrets, self._sensitive):
            for path in noted.below(top):
                del noted[path]
                self._closed_off.discard(path)
                self._tally.hidden.add(path)
        self._repositories.discard_below(top)
        self._watches.remove_below(top)


def _files_in(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as found:
            return [entry.path for entry in found if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _is_special(entry: "os.DirEntry[str]") -> bool:
    return not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False) or entry.is_symlink())


def _is_channel(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _files_below(path: str) -> Iterator[str]:
    """The path itself, unless it is a directory."""
    if os.path.islink(path) or not os.path.isdir(path):
        yield path
        return
    for directory, _, names in os.walk(path):
        yield from (f"{directory}/{name}" for name in names)


def _find_file(path: str) -> os.stat_result | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) else None


def _is_folder(path: str, found: os.stat_result) -> bool:
    """Whether it is a directory, or a link to one."""
    return stat.S_ISDIR(found.st_mode) or (stat.S_ISLNK(found.st_mode) and os.path.isdir(path))


def _is_ordinary(guard: Guarded, path: str, found: os.stat_result) -> bool:
    """A directory called `.git` is assessed by its content, and one in place of a program is not a program."""
    is_directory = stat.S_ISDIR(found.st_mode)
    return is_directory and guard.content in ("pointer", "program") and guard.depth == path.count("/")


def _signature(found: os.stat_result) -> Signature:
    if stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(path: str, guard: Guarded, found: os.stat_result) -> bytes | None:
    """The content of a file that git reads, or the target of a link that git writes through."""
    if guard.content in (None, "program"):
        return None
    try:
        if guard.content == "link":
            return os.fsencode(os.readlink(path))
        if not stat.S_ISREG(found.st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, LARGEST + 1)
    finally:
        os.close(descriptor)
    return data if len(data) <= LARGEST else None
