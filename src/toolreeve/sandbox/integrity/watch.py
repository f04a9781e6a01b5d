"""Watch over guarded and hidden paths in all writable directories.

A directory is watched before it is listed, so nothing made in between is missed. Where events were lost, or the kernel
gives no watches, everything is listed again: a result may come late, but it is never wrong. Not thread-safe.
"""

import os
import stat
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from toolreeve.core import guarded_paths as table
from toolreeve.core.git_config import LARGEST
from toolreeve.core.guarded_paths import Guarded, GuardTable
from toolreeve.sandbox.integrity import beneath
from toolreeve.sandbox.integrity.changes import NO_CHANGES, Changes, KnownState, Signature, Tally, with_units
from toolreeve.sandbox.integrity.git_references import GitReferences
from toolreeve.sandbox.integrity.path_table import PathTable, is_in
from toolreeve.sandbox.integrity.repositories import Repositories
from toolreeve.sandbox.kernel import inotify

MOST_DIRECTORIES = 100_000
MOST_COVERED = 4_000
_GENERATED = frozenset(
    "node_modules .venv venv site-packages target .tox .nox .cache .gradle .mypy_cache .pytest_cache .ruff_cache"
    " __pycache__ bower_components vendor .next .nuxt .terraform dist build .pnpm-store .yarn .bazel Pods".split()
)
_LAST = _GENERATED | table.REPOSITORY_BULK
_REPOSITORY_SIGNS = frozenset({"head", "objects", "commondir"})


class Watch:
    """`incomplete` says what is not watched, and why; it is empty when everything is. `version` changes whenever what
    is guarded or hidden does."""

    def __init__(self, guards: GuardTable, *, most_directories: int = MOST_DIRECTORIES) -> None:
        self._guards, self._most = guards, most_directories
        self._known: PathTable[KnownState] = PathTable()
        self._secrets: PathTable[Signature] = PathTable()
        self._accepted: dict[str, bytes] = {}
        self._repositories = Repositories(guards)
        self._locked: set[str] = set()
        self._leads = GitReferences(guards)
        self._watches = inotify.Watches()
        self._cut = ""
        self._unseen: set[str] = set()
        self._first: frozenset[str] = frozenset()
        self.version = 0
        self._tally = Tally()

    def start(self) -> None:
        """Walk all roots, once. Blocks for as long as that takes."""
        self._watches.open()
        walked = [self._scan(root) for root in (*self._guards.roots, *self._guards.readable)]
        self._first = frozenset().union(*walked)
        with self.unlocked():
            self._tally = Tally()
        for path in list(self._known):
            self.accept(path)

    def accept(self, path: str, content: bytes | None = None) -> frozenset[str]:
        """From now on, this is what a file that git reads held before; without `content`, what it holds now. What is
        there and is guarded from now on, because these settings lead to it.

        To be called only for what no command wrote, or for the very bytes that were judged.
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
        """Know what settings lead to. That it is there already is no change."""
        linked = self._known.below(f"{os.path.dirname(settings)}/worktrees")
        pointers = [each for each in linked if each.endswith("/gitdir")]
        trees = [os.path.dirname((self._known[each].content or b"").decode(errors="replace")) for each in pointers]
        led = self._leads.update(settings, content, filter(os.path.isabs, trees))
        tally, self._tally = self._tally, Tally()
        for path in led:
            self._look(path)
            if os.path.isdir(path) and not os.path.islink(path):
                self._scan(path)
        found = self._tally.appeared
        self._tally = tally
        if led:
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
        return self._watches.fileno()

    @property
    def incomplete(self) -> str:
        return self._cut or self._watches.shortage

    @property
    def excess(self) -> str:
        """Why not all that must be covered can be; empty when it can."""
        guarded = self.guarded()
        count = len(self._secrets) + len(guarded)
        if count <= MOST_COVERED:
            return ""
        [(directory, most)] = Counter(map(os.path.dirname, (*self._secrets, *guarded))).most_common(1)
        return (
            f"{count} paths have to be hidden or protected from commands, and at most {MOST_COVERED} can be"
            f"{self._cut and ': '}{self._cut}. Remove those that are not needed, or name them in"
            f" workspace.sensitive_allow; {directory!r} holds {most}"
        )

    @property
    def complete(self) -> bool:
        """Whether all directories were looked through."""
        return not self._cut

    def guarded(self) -> frozenset[str]:
        """What is there and must stay as it is: the outermost path of each."""
        return frozenset(known.unit for path, known in self._known.items() if not self.is_free(path))

    def is_free(self, path: str) -> bool:
        """Whether a path is judged, but needs no cover: git goes on using the links that a person made and writing its
        state, and what lies in a hidden directory is out of reach."""
        known = self._known.get(path)
        if known is not None and known.kind in ("link", "state"):
            return True
        return self._is_out_of_reach(path)

    def _is_out_of_reach(self, path: str) -> bool:
        """Whether it lies in a directory that is hidden."""
        while self._secrets and (path := path[: path.rindex("/")]):
            if path in self._secrets:
                return True
        return False

    def hidden(self) -> frozenset[str]:
        """What is there and hidden."""
        return frozenset(self._secrets)

    def settings(self) -> dict[str, tuple[int, bytes | None]]:
        """The files of settings of all repositories: their inode, and what they hold; None where it cannot be read."""
        found = {path: known for path, known in self._known.items() if known.kind == "config" and path == known.unit}
        reached = {path: known for path, known in found.items() if not self._is_out_of_reach(path)}
        return {path: (known.signature[1], known.content) for path, known in reached.items()}

    def hooks(self) -> frozenset[str]:
        """The directories of repositories that have hooks which git would run."""
        inside = (known.unit for path, known in self._known.items() if known.kind == "hooks" and path != known.unit
                  and not path.endswith(".sample"))  # fmt: skip
        links = (path for path, known in self._known.items() if known.kind == "hooks" and len(known.signature) > 2)
        found = {*inside, *(path for path in links if path == self._known[path].unit)}
        return frozenset(path for path in found if not self._is_out_of_reach(path))

    def judge(self, path: str) -> Guarded | None:
        """What guards an absolute path, as things are now: repositories are known by what is in them."""
        return self._repositories.judge(path, self._leads)

    def drain(self, most: int = inotify.MOST_QUEUED) -> Changes:
        """What happened since the last call; with fewer than all that can wait, a part of it. What commands go on doing
        meanwhile is left for the next call."""
        has_room = bool(self._unseen) and self._watches.directories + len(self._unseen) <= self._most
        if self._watches.shortage or has_room:
            return self._rescan()
        taken = 0
        while taken < most and (data := self._watches.read()):
            for event in inotify.events(data):
                if event.mask & (inotify.OVERFLOW | inotify.UNMOUNT) or not self._take(event):
                    return self._rescan()
                taken += 1
        return self._result() if taken or self._tally else NO_CHANGES

    def close(self) -> None:
        self._watches.close()

    def _take(self, event: inotify.InotifyEvent) -> bool:
        """Whether the event could be followed; everything must be listed again otherwise."""
        path = self._watches.path(event.watch)
        if path is None:
            return True
        if event.mask & inotify.IGNORED:
            self._watches.forget(event.watch)
            return not self._is_root(path)
        if event.mask & (inotify.DELETE_SELF | inotify.MOVE_SELF):
            return not self._is_root(path)
        if event.mask & (inotify.MODIFY | inotify.CLOSE_WRITE | inotify.ATTRIB):
            self._look(path, written=True)
            return True
        self._take_name(path, event)
        return True

    def _take_name(self, directory: str, event: inotify.InotifyEvent) -> None:
        path = f"{directory.rstrip('/')}/{event.name}"
        folded = event.name.casefold()
        is_directory = event.mask & inotify.IS_DIRECTORY
        if is_directory:
            self._forget(path)
        if folded in _REPOSITORY_SIGNS:
            self._look_for_repository(directory)
        if self._matters_in(directory)(path):
            self._look(path)
        if is_directory and event.mask & (inotify.CREATE | inotify.MOVED_TO):
            self._scan(path)

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
        secrets = self._secrets
        tally, self._tally = self._tally, Tally()
        self._watches.remove_all()
        self._known, self._secrets = PathTable(), PathTable()
        self._repositories = self._repositories.anew()
        self._cut = ""
        self._unseen = set()
        for root in (*self._guards.roots, *self._guards.readable):
            self._scan(root)
        self._tally = tally
        tally.compare(before, self._known, secrets.items() ^ self._secrets.items())
        return self._result()

    def _result(self) -> Changes:
        tally, self._tally = self._tally, Tally()
        self.version += 1
        for path in tally.gone.keys() - self._known.keys():
            if self._accepted.pop(path, None) is not None:
                self._leads.update(path, None)
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
        outer = {unit if unit in paths else path for unit, path in with_units(paths, known)}
        around = units & outer
        return frozenset(path for path in outer if not is_in(os.path.dirname(path), around))

    def _scan(self, top: str) -> list[str]:
        """Watch and list a directory and what is below it, shallow things first and generated ones last; those that
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
        """Directories that stood there at the first walk come before those that commands may have made since."""
        if self._first and directory not in self._first:
            return False
        return os.path.basename(directory) not in _LAST

    def _close_off(self, directories: Iterable[str]) -> None:
        """What is not looked into is hidden from commands: nothing in it can be read or changed by them."""
        self._cut = f"more than {self._most} directories: those further down are hidden from commands"
        for directory in directories:
            try:
                self._note_secret(directory, _signature(os.lstat(directory)))
            except OSError:  # it is gone
                continue
            self._unseen.add(directory)

    def _list(self, directory: str) -> Iterator[str]:
        """Look at the names in a directory; those that are directories to go on with."""
        self._watches.add(directory, inotify.NAMES)
        try:
            with os.scandir(directory) as found:
                entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
        except PermissionError:
            self._locked.add(directory)
            return
        except OSError:
            return
        self._repositories.add_if_one(directory, {name.casefold() for name, _ in entries})
        matters = self._matters_in(directory)
        for name, is_directory in entries:
            path = f"{directory.rstrip('/')}/{name}"
            if matters(path):
                self._look(path)
            if is_directory and not self._is_fixed(path):
                yield name

    def _matters_in(self, directory: str) -> Callable[[str], bool]:
        """Tells of a path in the directory whether it must be looked at."""
        if self._repositories.has_bulk(directory):
            return lambda path: self._is_named(path) or path in self._known or os.path.islink(path)
        if directory in self._known or self._repositories.is_near(directory):
            return lambda _: True
        return self._is_named

    def _is_named(self, path: str) -> bool:
        return self._guards.matters(os.path.basename(path).casefold()) or path in self._leads

    def _is_root(self, path: str) -> bool:
        return path in self._guards.roots or path in self._guards.readable

    def _is_fixed(self, path: str) -> bool:
        return path in self._guards.environment or path in self._guards.secret

    def _look(self, path: str, *, written: bool = False) -> None:
        """Note what a path is now: whether it is hidden and whether it is guarded are two questions.

        A clock that ticks too slowly for two writes makes both look alike: `written` is known to differ.
        """
        try:
            found = os.lstat(path)
        except PermissionError:
            self._locked.add(os.path.dirname(path))
            return
        except OSError:
            self._forget(path)
            return
        guard = self.judge(path)
        if self._is_hidden(path, guard):
            self._note_secret(path, _signature(found))
        if guard is None or _is_ordinary(guard, path, found):
            if path in self._known:  # a link no more
                self._tally.remove(path, self._known.pop(path))
            return
        unit = table.outermost(path, guard.depth)
        content = _read(path, guard, found)
        known = KnownState(unit=unit, signature=_signature(found), kind=guard.content, content=content)
        self._tally.note(path, self._known.get(path), known, written=written)
        self._known[path] = known
        if stat.S_ISREG(found.st_mode):
            self._watches.add(path, inotify.CONTENT)

    def _is_hidden(self, path: str, guard: Guarded | None) -> bool:
        """Whether it needs a cover of its own. A branch may be called as a secret is."""
        directory = os.path.dirname(path)
        is_branch = self._repositories.has_bulk(directory) and "/.git/" in directory.casefold()
        is_link = guard is not None and guard.content == "link"
        if self._guards.hidden(path) is None or is_branch or is_link:
            return False
        return not self._is_out_of_reach(path)

    def _note_secret(self, path: str, signature: Signature) -> None:
        if self._secrets.get(path) != signature:
            self._tally.hidden.add(path)
        self._secrets[path] = signature

    def _forget(self, top: str) -> None:
        """What was at a path and below it is there no more."""
        for path in self._known.below(top):
            self._tally.remove(path, self._known.pop(path))
        for path in self._secrets.below(top):
            del self._secrets[path]
            self._unseen.discard(path)
            self._tally.hidden.add(path)
        self._repositories.discard_below(top)
        self._watches.remove_below(top)


def _is_ordinary(guard: Guarded, path: str, found: os.stat_result) -> bool:
    """A directory called `.git` is judged by what is in it, and one where a program was looked for is none."""
    is_directory = stat.S_ISDIR(found.st_mode)
    return is_directory and guard.content in ("pointer", "program") and guard.depth == path.count("/")


def _signature(found: os.stat_result) -> Signature:
    if stat.S_ISDIR(found.st_mode):
        return found.st_dev, found.st_ino
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read(path: str, guard: Guarded, found: os.stat_result) -> bytes | None:
    """What a file holds that git reads, or where a link leads that git writes through."""
    if guard.content == "link":
        return os.fsencode(os.readlink(path))
    if guard.content in (None, "program") or not stat.S_ISREG(found.st_mode):
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(descriptor, LARGEST + 1)
    finally:
        os.close(descriptor)
    return data if len(data) <= LARGEST else None
