"""Covers: mounts that hide or protect paths of a sandbox.

Made in the sandbox's own root, where nothing of the host exists, and again whenever a path was replaced. The kernel
never follows a link here: each is read, pinned in place, and its target is covered.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from toolreeve.sandbox.integrity.link_trail import LinkTrail, follow
from toolreeve.sandbox.kernel import syscalls

BLANK = "/.blank"
"""Holds an empty folder and files with mode 0, mounted over hidden paths."""
IGNORED = "gitignore"
"""The file there that names the hidden paths for git, which could not add them."""
_MOST_BLANKS = 1_000
_PASSES = 8
_SPECIAL = re.compile(rb"[*?\[\]\\ ]")
_CHANGED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_CANNOT_PIN_LINKS = {errno.EINVAL, errno.ENOTDIR, errno.EOPNOTSUPP}


class Covers:
    """The covers of one sandbox. Only paths below its `writable` ones need protection. `blanks` is a descriptor of the
    folder with the blanks in which more can be made."""

    def __init__(self, writable: tuple[str, ...], blanks: int) -> None:
        self._writable = writable
        self._blanks = blanks
        found = [os.stat(f"{BLANK}/{name}") for name in ("file", "folder")]
        self._blank_files = {(each.st_dev, each.st_ino) for each in found}

    def close(self) -> None:
        """In a process that makes no covers."""
        os.close(self._blanks)

    def hide(self, paths: Iterable[str]) -> None:
        for path in paths:
            _repeat_until_settled(path, self._hide)

    def show(self, paths: Iterable[str]) -> None:
        """Mount the numbered files beside the blanks over these paths, in their order."""
        for number, path in enumerate(paths):
            with _opened(f"{BLANK}/{number}") as shown:
                if shown is not None:
                    _repeat_until_settled(path, partial(self._show, shown))

    def _show(self, shown: int, trail: LinkTrail) -> bool:
        done = trail.end is not None and _mount_over(trail.end, shown)
        return self._pin_all(trail.links) or done

    def protect(self, paths: Iterable[str], *, fixed: bool) -> None:
        """`fixed` paths have all their parent folders pinned; others only those from the first dot folder on."""
        for path in paths:
            _repeat_until_settled(path, partial(self._protect, path, fixed=fixed))

    def _hide(self, trail: LinkTrail) -> bool:
        """Through a link that a command can make, only paths are hidden that the command could remove anyway."""
        done = False
        by_command = any(map(self._root, trail.links))
        if trail.end is not None and (not by_command or self._root(trail.end)):
            done = self._mount_blank(trail.end)
        return self._pin_all(trail.links) or done

    def _protect(self, path: str, trail: LinkTrail, *, fixed: bool) -> bool:
        every = fixed or bool(trail.links)
        pins = [*trail.links]
        done = False
        if trail.end is not None and self._root(trail.end):
            if _is_repository(trail, path):
                pins.append(trail.end)
            else:
                done = _make_read_only(trail.end)
            pins += self._above(trail.end, every=every)
        for link in trail.links:
            pins += self._above(link, every=every)
        inner_first = sorted(set(pins), key=lambda folder: -folder.count("/"))
        return self._pin_all(inner_first) or done

    def _mount_blank(self, path: str) -> bool:
        with _opened(path) as target:
            if target is None or _identity(target) in self._blank_files:
                return False
            name = self._blank_like(os.fstat(target))
        self._ignore(path)
        with _opened(f"{BLANK}/{name}") as blank:
            return blank is not None and _mount_over(path, blank)

    def _ignore(self, path: str) -> None:
        """Git does not see a hidden path that it does not track."""
        worktree = os.path.dirname(path)
        while len(worktree) > 1 and not os.path.lexists(f"{worktree}/.git"):
            worktree = os.path.dirname(worktree)
        if len(worktree) == 1:
            worktree = self._root(path)  # which may become one
        if not worktree or "\n" in path:
            return
        pattern = _SPECIAL.sub(rb"\\\g<0>", os.fsencode(path[len(worktree) :]))
        listed = os.open(IGNORED, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, dir_fd=self._blanks)
        try:
            os.write(listed, pattern + b"\n")
        finally:
            os.close(listed)

    def _blank_like(self, found: os.stat_result) -> str:
        """The name of a blank for a hidden path. A file's has its size and time, so that git, which compares those,
        does not take a hidden file that it tracks for a changed one."""
        if stat.S_ISDIR(found.st_mode):
            return "folder"
        name = f"{found.st_size}-{found.st_mtime_ns}"
        if not stat.S_ISREG(found.st_mode) or len(self._blank_files) > _MOST_BLANKS:
            return "file"
        try:
            blank = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0, dir_fd=self._blanks)
        except FileExistsError:
            return name
        try:
            os.truncate(blank, found.st_size)
            os.utime(blank, ns=(found.st_mtime_ns, found.st_mtime_ns))
            self._blank_files.add(_identity(blank))
        finally:
            os.close(blank)
        return name

    def _pin_all(self, paths: Iterable[str]) -> bool:
        done = False
        for path in paths:
            if self._root(path):
                done = _pin(path) or done
        return done

    def _root(self, path: str) -> str:
        """The writable path that this one lies below."""
        return next((root for root in self._writable if path.startswith(f"{root}/")), "")

    def _above(self, path: str, *, every: bool) -> Iterator[str]:
        root = self._root(path)
        if not root:
            return
        folder = root
        for name in path[len(root) + 1 :].split("/")[:-1]:
            folder = f"{folder}/{name}"
            every = every or name.startswith(".")
            if every:
                yield folder


def _repeat_until_settled(path: str, make: Callable[[LinkTrail], bool]) -> None:
    """Repeat until a pass finds nothing left to do: the path may change meanwhile."""
    for _ in range(_PASSES):
        try:
            if not make(follow(path)):
                return
        except OSError as problem:
            if problem.errno not in _CHANGED:
                raise
    raise OSError(errno.EBUSY, f"{path} keeps changing while it is being covered")


def _is_repository(trail: LinkTrail, path: str) -> bool:
    """Whether a link stands for the folder `.git`, of which only some paths are protected, each by itself."""
    return bool(trail.links) and os.path.basename(path).casefold() == ".git" and os.path.isdir(path)


@contextlib.contextmanager
def _opened(path: str, flags: int = 0) -> Iterator[int | None]:
    """None where it does not exist. A link in it raises ELOOP: it was put there after the path was resolved."""
    try:
        descriptor = syscalls.open_path(path, flags)
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _mount_over(path: str, source: int) -> bool:
    with _opened(path) as target:
        if target is None or _identity(target) == _identity(source):
            return False
        _attach(syscalls.detached_tree("", source), syscalls.ATTR_RDONLY, "", target)
    return True


def _make_read_only(path: str) -> bool:
    with _opened(path) as target:
        if target is None or _is_read_only(target):
            return False
        _attach(syscalls.detached_tree("", target), syscalls.ATTR_RDONLY, "", target)
    return True


def _pin(path: str) -> bool:
    """Mount a path on itself, so that it can be neither renamed nor removed. In a read-only folder it cannot be
    anyway."""
    folder, name = os.path.split(path)
    with _opened(folder) as parent, _opened(path, os.O_NOFOLLOW) as target:
        if parent is None or target is None:
            return False
        if _is_read_only(parent) or _mount_id(parent) != _mount_id(target):
            return False
        try:
            _attach(syscalls.detached_tree(name, parent), 0, name, parent)
        except OSError as problem:
            if problem.errno in _CANNOT_PIN_LINKS and os.path.islink(path):
                return False  # on such a kernel the comparison after the command catches it
            raise
    return True


def _attach(tree: int, attributes: int, name: str, target: int) -> None:
    try:
        syscalls.set_mount(tree, attributes)
        syscalls.attach_tree(tree, name, target)
    finally:
        os.close(tree)


def _is_read_only(descriptor: int) -> bool:
    return bool(os.fstatvfs(descriptor).f_flag & os.ST_RDONLY)


def _identity(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino


def _mount_id(descriptor: int) -> bytes:
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
        return file.read().partition(b"mnt_id:")[2].split()[0]
