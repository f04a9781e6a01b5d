"""What does a program find when it looks around? A fresh root with an allow-list of mounts; nothing else exists.

Built in a mount namespace of its own while the host's files can still be seen, and sealed before any program runs.
"""

import contextlib
import os
from collections.abc import Iterator

from toolreeve.sandbox import syscalls
from toolreeve.sandbox.plan import Plan

PRIVATE = "/private"
TEMPORARY = ("/tmp", "/dev/shm")  # noqa: S108  # inside the place, not the host's
DEVICES = ("null", "zero", "full", "random", "urandom")
PROGRAM_FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/games")
_STAGE = "/tmp"  # noqa: S108  # any directory will do: a file system of our own is put over it
_EMPTY = ".empty"
_KEPT_SMALL = syscalls.MS_NOSUID | syscalls.MS_NODEV
_STREAMS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}


class Tree:
    """A piece of the host's files, cut loose, to be put at the same path in the new root."""

    __slots__ = ("descriptor", "folder", "path")

    def __init__(self, path: str, source: str, attributes: int, mapping: int = -1) -> None:
        self.path = path
        self.folder = os.path.isdir(source)
        self.descriptor = syscalls.detached_tree(source)
        safe = attributes | syscalls.ATTR_NOSUID | syscalls.ATTR_NODEV
        syscalls.set_mount(self.descriptor, safe, mapping)

    def attach(self) -> None:
        target = self.path.lstrip("/")
        _make_point(target, folder=self.folder)
        syscalls.attach_tree(self.descriptor, os.path.join(_STAGE, target))
        os.close(self.descriptor)


def build(plan: Plan, mapping: int) -> None:
    """Enter the new root. `mapping` is the user namespace whose ids the writable files are shown in, or -1."""
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    links = [path for path in plan.readable if os.path.islink(path)]
    pointing = [(path, os.readlink(path)) for path in links]
    trees = sorted(_trees(plan, mapping), key=lambda tree: tree.path.count("/"))
    programs = [Tree(path, source, syscalls.ATTR_RDONLY) for path, source in (plan.programs or {}).items()]
    syscalls.mount("tmpfs", _STAGE, "tmpfs", _KEPT_SMALL, "size=4m,mode=755")
    os.chdir(_STAGE)
    _make_temporary(plan)
    _make_devices()
    for path, target in pointing:
        os.makedirs(os.path.dirname(path)[1:] or ".", exist_ok=True)
        os.symlink(target, path[1:])
    for tree in trees:
        tree.attach()
    if plan.programs is not None:
        _limit_programs(programs)
    for path in plan.hidden:
        _cover(path)
    _write_files(plan)
    _seal()


def _trees(plan: Plan, mapping: int) -> Iterator[Tree]:
    may_not_run = syscalls.ATTR_NOEXEC if plan.programs is not None else 0
    for path in plan.readable:
        if os.path.exists(path) and not os.path.islink(path):
            yield Tree(path, path, syscalls.ATTR_RDONLY)
    for path in (*plan.writable, *_pins(plan)):
        yield Tree(path, path, may_not_run, mapping)
    for path in plan.protected:
        yield Tree(path, path, syscalls.ATTR_RDONLY | may_not_run, mapping)


def _pins(plan: Plan) -> list[str]:
    """The folders above protected paths. As mounts of their own they cannot be renamed away with what they hold."""
    pins: dict[str, None] = {}
    for path in plan.protected:
        above = os.path.dirname(path)
        while above not in plan.writable and any(above.startswith(f"{root}/") for root in plan.writable):
            pins[above] = None
            above = os.path.dirname(above)
    return list(pins)


def _make_point(target: str, *, folder: bool) -> None:
    if folder:
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    if not os.path.lexists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _make_temporary(plan: Plan) -> None:
    flags = _KEPT_SMALL | (syscalls.MS_NOEXEC if plan.programs is not None else 0)
    for path in (*TEMPORARY, PRIVATE):
        os.makedirs(path[1:], exist_ok=True)
    for path in TEMPORARY:
        mount_temporary(path[1:], plan.temporary_mb, flags)


def mount_temporary(target: str, megabytes: int, flags: int = _KEPT_SMALL) -> None:
    syscalls.mount("tmpfs", target, "tmpfs", flags, f"size={megabytes}m,mode=1777,nr_inodes=20000")


def _make_devices() -> None:
    for name in DEVICES:
        _make_point(f"dev/{name}", folder=False)
        syscalls.mount(f"/dev/{name}", f"dev/{name}", None, syscalls.MS_BIND)
    for name, stream in _STREAMS.items():
        os.symlink(f"/proc/self/fd{stream}", f"dev/{name}")
    os.makedirs("dev/pts")
    with contextlib.suppress(OSError):  # a machine without pseudo-terminals has none here either
        options = "newinstance,ptmxmode=0666,mode=620,max=64"
        syscalls.mount("devpts", "dev/pts", "devpts", syscalls.MS_NOSUID | syscalls.MS_NOEXEC, options)
        os.symlink("pts/ptmx", "dev/ptmx")


def _limit_programs(programs: list[Tree]) -> None:
    folders = [folder[1:] for folder in PROGRAM_FOLDERS if os.path.isdir(folder[1:])]
    for folder in folders:
        syscalls.mount("tmpfs", folder, "tmpfs", _KEPT_SMALL, "size=1m,mode=755")
    for tree in programs:
        tree.attach()
    for folder in folders:
        _make_read_only(folder)


def _cover(path: str) -> None:
    target = path.lstrip("/")
    if os.path.isdir(target):
        syscalls.mount("tmpfs", target, "tmpfs", _KEPT_SMALL | syscalls.MS_RDONLY, "size=4k,mode=000")
    elif os.path.lexists(target):
        os.close(os.open(_EMPTY, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o000))
        syscalls.mount(_EMPTY, target, None, syscalls.MS_BIND)
        _make_read_only(target)


def _write_files(plan: Plan) -> None:
    uid = os.geteuid() if plan.uid is None else plan.uid
    texts = {
        "passwd": f"root:x:0:0::/:/bin/false\nagent:x:{uid}:{uid}::/tmp:/bin/bash\n",
        "group": f"root:x:0:\nagent:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "hostname": "sandbox\n",
        "gitconfig": "[safe]\n\tdirectory = *\n[core]\n\tcheckStat = minimal\n",
    }
    os.makedirs("etc", exist_ok=True)
    for name, text in texts.items():
        with open(f"etc/{name}", "w") as file:
            file.write(text)


def _seal() -> None:
    os.makedirs("proc", exist_ok=True)
    mount_processes("proc")
    syscalls.pivot_here()
    _make_read_only("/")


def mount_processes(target: str) -> None:
    """The processes of the caller's namespace. Must come while another view of them is still mounted."""
    syscalls.mount("proc", target, "proc", _KEPT_SMALL | syscalls.MS_NOEXEC)


def _make_read_only(target: str) -> None:
    flags = syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY | _KEPT_SMALL
    syscalls.mount(None, target, None, flags)
