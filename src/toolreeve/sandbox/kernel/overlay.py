"""Overlays of a trial: a layer over every writable root.

Mounted in the slot's own mount namespace, before it gives up its rights. What is covered in a root stays covered: the
overlay alone would show it again. The layer is memory of a fixed size, and no path of the sandbox leads to it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from toolreeve.sandbox.kernel import syscalls
from toolreeve.sandbox.plan import Plan, within

_STAGE = "/private/work"
_INODES = 65536
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_NOSUID_NODEV = syscalls.MS_NOSUID | syscalls.MS_NODEV
_OPTIONS = "upperdir=upper,workdir=work,volatile,redirect_dir=nofollow,index=off,metacopy=off,xino=off"


class _Mount(NamedTuple):
    path: str
    is_read_only: bool


def cover(plan: Plan) -> list[int]:
    """Mount the overlays. Returns a descriptor of each upper directory, in the order of the writable roots."""
    covers = [_take_up(mount) for mount in _outermost(_mounts_below(plan.writable))]
    options = f"size={plan.layer_mb}m,nr_inodes={_INODES},mode=700"
    syscalls.mount("tmpfs", _STAGE, "tmpfs", _NOSUID_NODEV, options)
    flags = _NOSUID_NODEV if plan.programs is None else _NOSUID_NODEV | syscalls.MS_NOEXEC
    uppers = [
        mount_overlay(root, f"{_STAGE}/{number}", is_user=plan.uid is None, flags=flags)
        for number, root in enumerate(plan.writable)
    ]
    os.chdir("/")
    for path, tree in covers:
        _put_back(path, tree)
    syscalls.unmount(_STAGE)
    return uppers


def mount_overlay(root: str, place: str, *, is_user: bool, flags: int = _NOSUID_NODEV) -> int:
    """Mount an overlay over a directory, with its layer at a new place. Returns a descriptor of the upper directory."""
    for name in ("", "/upper", "/work"):
        os.mkdir(f"{place}{name}", 0o700)
    found = os.stat(root)
    upper = f"{place}/upper"
    if not is_user:
        os.chown(upper, found.st_uid, found.st_gid)
    os.chmod(upper, found.st_mode & 0o7777)
    descriptor = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chdir(place)
    lower = syscalls.open_path(root)  # by descriptor: a path may hold characters that separate options
    try:
        options = f"lowerdir=/proc/self/fd/{lower},{_OPTIONS}"
        if is_user:
            options += ",userxattr"
        syscalls.mount("overlay", root, "overlay", flags, options)
    except OSError:
        os.close(descriptor)
        raise
    finally:
        os.close(lower)
    return descriptor


def _take_up(mount: _Mount) -> tuple[str, int | None]:
    """A copy of a cover. A pin, which only keeps a path in its place, is made anew: a copy would be the real files."""
    return mount.path, syscalls.detached_tree(mount.path) if mount.is_read_only else None


def _put_back(path: str, tree: int | None) -> None:
    if tree is None:
        tree = syscalls.detached_tree(path)
    try:
        syscalls.attach_tree(tree, path)
    finally:
        os.close(tree)


def _outermost(mounts: Iterable[_Mount]) -> Iterator[_Mount]:
    """Without those inside a read-only one, which are copied with it."""
    taken: list[str] = []
    for mount in sorted(set(mounts), key=lambda each: (each.path.count("/"), each.is_read_only)):
        if not any(within(mount.path, path) for path in taken):
            if mount.is_read_only:
                taken.append(mount.path)
            yield mount


def _mounts_below(roots: tuple[str, ...]) -> Iterator[_Mount]:
    """The topmost mount at each path below the roots."""
    found: dict[str, _Mount] = {}
    for path, options in read_mounts():
        if any(path != root and within(path, root) for root in roots):
            found[path] = _Mount(path, "ro" in options.split(","))
    yield from found.values()


def read_mounts() -> Iterator[tuple[str, str]]:
    """The path and the options of every mount that we see, in the order in which they were made."""
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.split(b" ")
            path = _ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), fields[4])  # no codec is loaded in a slot
            yield os.fsdecode(path), fields[5].decode()
