"""Covers: mounts that hide or protect paths of a place.

Made in the place's own root, where nothing of the host exists, and again whenever a path was replaced. The kernel never
follows a link here: each is read, pinned to where it is, and what it leads to is covered.
"""

import contextlib
import errno
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from toolreeve.sandbox.integrity.link_trail import LinkTrail, follow
from toolreeve.sandbox.kernel import syscalls

BLANK = "/.blank"
"""Holds an empty file and an empty folder that nobody may open, put over what is hidden."""
_PASSES = 8
_CHANGED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_CANNOT_PIN_LINKS = {errno.EINVAL, errno.ENOTDIR, errno.EOPNOTSUPP}


class Covers:
    """Of one place. Only what lies below its `writable` paths needs protection."""

    def __init__(self, writable: tuple[str, ...]) -> None:
        self._writable = writable
        self._blanks = {folder: syscalls.open_path(f"{BLANK}/{folder}") for folder in ("file", "folder")}
        self._blank_files = {_identity(blank) for blank in self._blanks.values()}

    def hide(self, paths: Iterable[str]) -> None:
        for path in paths:
            _until_settled(path, self._hide)

    def show(self, paths: Iterable[str]) -> None:
        """Put the numbered files beside the blanks over these paths, in their order."""
        for number, path in enumerate(paths):
            with _opened(f"{BLANK}/{number}") as shown:
                if shown is not None:
                    _until_settled(path, partial(self._show, shown))

    def _show(self, shown: int, trail: LinkTrail) -> bool:
        done = trail.end is not None and _put_over(trail.end, shown)
        return self._pin_all(trail.links) or done

    def protect(self, paths: Iterable[str], *, fixed: bool) -> None:
        """`fixed` paths have all the folders above them pinned; others only those from the first hidden folder on."""
        for path in paths:
            _until_settled(path, partial(self._protect, path, fixed=fixed))

    def _hide(self, trail: LinkTrail) -> bool:
        """A link that a command can make hides nothing but what is the command's own to remove."""
        done = False
        led = any(map(self._root, trail.links))
        if trail.end is not None and (not led or self._root(trail.end)):
            done = self._put_blank(trail.end)
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

    def _put_blank(self, path: str) -> bool:
        with _opened(path) as place:
            if place is None or _identity(place) in self._blank_files:
                return False
            blank = self._blanks["folder" if os.path.isdir(path) else "file"]
        return _put_over(path, blank)

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


def _until_settled(path: str, make: Callable[[LinkTrail], bool]) -> None:
    """Pass after pass, until one finds nothing left to do: the path may change while we work."""
    for _ in range(_PASSES):
        try:
            if not make(follow(path)):
                return
        except OSError as problem:
            if problem.errno not in _CHANGED:
                raise
    raise OSError(errno.EBUSY, f"{path} keeps changing while it is being covered")


def _is_repository(trail: LinkTrail, path: str) -> bool:
    """Whether a link stands for the folder `.git`, of which only some things are protected, each by itself."""
    return bool(trail.links) and os.path.basename(path).casefold() == ".git" and os.path.isdir(path)


@contextlib.contextmanager
def _opened(path: str, flags: int = 0) -> Iterator[int | None]:
    """None where it does not exist. A link in it raises ELOOP: it has become one since we looked."""
    try:
        place = syscalls.open_path(path, flags)
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        yield None
        return
    try:
        yield place
    finally:
        os.close(place)


def _put_over(path: str, source: int) -> bool:
    with _opened(path) as place:
        if place is None or _identity(place) == _identity(source):
            return False
        _attach(syscalls.detached_tree("", source), syscalls.ATTR_RDONLY, "", place)
    return True


def _make_read_only(path: str) -> bool:
    with _opened(path) as place:
        if place is None or _is_read_only(place):
            return False
        _attach(syscalls.detached_tree("", place), syscalls.ATTR_RDONLY, "", place)
    return True


def _pin(path: str) -> bool:
    """Mounted on itself it can neither be renamed nor removed. In a read-only folder it cannot be anyway."""
    folder, name = os.path.split(path)
    with _opened(folder) as parent, _opened(path, os.O_NOFOLLOW) as place:
        if parent is None or place is None or _is_read_only(parent) or _mount(parent) != _mount(place):
            return False
        try:
            _attach(syscalls.detached_tree(name, parent), 0, name, parent)
        except OSError as problem:
            if problem.errno in _CANNOT_PIN_LINKS and os.path.islink(path):
                return False  # such a kernel leaves it to the comparison after the command
            raise
    return True


def _attach(tree: int, attributes: int, target: str, place: int) -> None:
    try:
        syscalls.set_mount(tree, attributes)
        syscalls.attach_tree(tree, target, place)
    finally:
        os.close(tree)


def _is_read_only(place: int) -> bool:
    return bool(os.fstatvfs(place).f_flag & os.ST_RDONLY)


def _identity(place: int) -> tuple[int, int]:
    found = os.fstat(place)
    return found.st_dev, found.st_ino


def _mount(place: int) -> bytes:
    with open(f"/proc/self/fdinfo/{place}", "rb") as file:
        return file.read().partition(b"mnt_id:")[2].split()[0]
