"""Mounts of a sandbox: a new root with an allow-list of paths.

Nothing else exists in it. Built in its own mount namespace while the host's files are still visible, and sealed before
any program runs.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence

from toolreeve.sandbox.kernel import syscalls
from toolreeve.sandbox.kernel.covers import BLANK, IGNORED, Covers
from toolreeve.sandbox.plan import Plan, outermost, within

PRIVATE = "/private/work"
HOME = "/private/home"
TEMPORARY = ("/tmp", "/dev/shm", HOME, PRIVATE)  # noqa: S108  # inside the sandbox, not the host's
DEVICES = ("null", "zero", "full", "random", "urandom")
PROGRAM_FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/games")
LIBRARIES = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32")
"""The libraries of the system's programs: files that are mapped from there must be executable."""
_STAGE = "/tmp"  # noqa: S108  # any directory will do: a tmpfs is mounted over it
_NOSUID_NODEV = syscalls.MS_NOSUID | syscalls.MS_NODEV
_STREAMS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}


class Tree:
    """A detached mount of a host path, to be attached at the same path in the new root."""

    __slots__ = ("descriptor", "is_folder", "path")

    def __init__(self, path: str, source: str, attributes: int, mapping: int = -1) -> None:
        self.path = path
        opened = syscalls.open_path(source)
        try:
            self.is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
            self.descriptor = syscalls.detached_tree("", opened)
        finally:
            os.close(opened)
        safe = attributes | syscalls.ATTR_NOSUID | syscalls.ATTR_NODEV
        try:
            syscalls.set_mount(self.descriptor, safe, mapping)
        except OSError as problem:
            if mapping < 0:
                raise
            message = f"the file system of {path!r} does not support id-mapped mounts, which commands of root need"
            raise OSError(problem.errno, message) from None

    def attach(self) -> None:
        target = self.path.lstrip("/")
        _make_mount_point(target, is_folder=self.is_folder)
        syscalls.attach_tree(self.descriptor, os.path.join(_STAGE, target))
        os.close(self.descriptor)


def build(plan: Plan, mapping: int) -> Covers:
    """Enter the new root. `mapping` is the user namespace that maps the ids of writable files, or -1."""
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    linked = [path for path in plan.readable if path not in plan.sources and os.path.islink(path)]
    links = [(path, os.readlink(path)) for path in linked]
    trees = sorted(_trees(plan, mapping), key=lambda tree: tree.path.count("/"))
    programs = [Tree(path, source, syscalls.ATTR_RDONLY) for path, source in (plan.programs or {}).items()]
    syscalls.mount("tmpfs", _STAGE, "tmpfs", _NOSUID_NODEV, "size=4m,mode=755")
    os.chdir(_STAGE)
    for path in TEMPORARY:
        os.makedirs(path[1:], exist_ok=True)
    _make_devices()
    for path, target in links:
        os.makedirs(os.path.dirname(path)[1:] or ".", exist_ok=True)
        os.symlink(target, path[1:])
    for tree in trees:
        tree.attach()
    if plan.programs is not None:
        _limit_programs(programs)
    _write_files(plan)
    _make_blanks(plan)
    blanks = syscalls.detached_tree(BLANK[1:])  # can be written to when the root no longer can
    _seal()
    covers = Covers(plan.writable, blanks)
    covers.hide(plan.hidden)
    covers.show(plan.contents)
    covers.protect(plan.protected, fixed=True)
    covers.protect(plan.guarded, fixed=False)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_SHARED)
    return covers


def _trees(plan: Plan, mapping: int) -> Iterator[Tree]:
    noexec = syscalls.ATTR_NOEXEC if plan.programs is not None else 0
    for path in plan.readable:
        if path in plan.sources or not os.path.islink(path):
            source = plan.sources.get(path, path)
            may_run = path in LIBRARIES or any(within(program, source) for program in (plan.programs or {}).values())
            yield Tree(path, source, syscalls.ATTR_RDONLY if may_run else syscalls.ATTR_RDONLY | noexec)
    for path in plan.writable:
        yield Tree(path, path, noexec, mapping)
    for path in plan.viewed:
        yield Tree(path, path, syscalls.ATTR_RDONLY | noexec, mapping)


def follow_sandbox() -> None:
    """In a mount namespace just copied: later covers of the sandbox propagate here, and none of our mounts there."""
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_SLAVE)


def temporary_folders(plan: Plan) -> dict[str, set[str]]:
    """Mount new ones, each with the names in it that must stay: mounts of the sandbox."""
    visible = (*plan.readable, *plan.writable, *plan.viewed)
    flags = _NOSUID_NODEV
    if plan.programs is not None:
        flags |= syscalls.MS_NOEXEC
    return {path: _renew(path, plan.temporary_mb, flags, visible) for path in TEMPORARY if path not in visible}


def _renew(folder: str, megabytes: int, flags: int, visible: Sequence[str]) -> set[str]:
    """Mount a tmpfs over a folder. Mounts below it are mounted there again, where they cannot be moved."""
    mounted = outermost([path for path in visible if path.startswith(f"{folder}/")])
    trees = [(path, os.path.isdir(path), syscalls.detached_tree(path)) for path in mounted]
    mount_temporary(folder, megabytes, flags)
    names = {path[len(folder) + 1 :].split("/")[0] for path in mounted}
    for path, is_folder, _ in trees:
        _make_mount_point(path, is_folder=is_folder)
    above = [f"{folder}/{name}" for name in names if f"{folder}/{name}" not in mounted]
    for path in above:
        syscalls.mount(path, path, None, syscalls.MS_BIND)
    for path, _, tree in trees:
        syscalls.attach_tree(tree, path)
        os.close(tree)
    for path in above:
        _make_read_only(path)
    return names


def _make_mount_point(target: str, *, is_folder: bool) -> None:
    if is_folder:
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    if not os.path.lexists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def mount_temporary(target: str, megabytes: int, flags: int = _NOSUID_NODEV) -> None:
    syscalls.mount("tmpfs", target, "tmpfs", flags, f"size={megabytes}m,mode=1777,nr_inodes=20000")


def _make_devices() -> None:
    for name in DEVICES:
        _make_mount_point(f"dev/{name}", is_folder=False)
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
        syscalls.mount("tmpfs", folder, "tmpfs", _NOSUID_NODEV, "size=1m,mode=755")
    for tree in programs:
        tree.attach()
    for folder in folders:
        _make_read_only(folder)


def _make_blanks(plan: Plan) -> None:
    os.makedirs(f"{BLANK[1:]}/folder", mode=0o755)
    os.chmod(f"{BLANK[1:]}/folder", 0)
    for name, mode in (("file", 0), (IGNORED, 0o644)):
        os.close(os.open(f"{BLANK[1:]}/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, mode))
    for number, data in enumerate(plan.contents.values()):
        with open(f"{BLANK[1:]}/{number}", "wb") as file:
            file.write(data.encode("latin-1"))


def _write_files(plan: Plan) -> None:
    uid = os.geteuid() if plan.uid is None else plan.uid
    texts = {
        "passwd": f"root:x:0:0::/:/bin/false\nagent:x:{uid}:{uid}::{HOME}:/bin/bash\n",
        "group": f"root:x:0:\nagent:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
        "hostname": "sandbox\n",
        "gitconfig": (
            f"[safe]\n\tdirectory = *\n[core]\n\tcheckStat = minimal\n\texcludesFile = {BLANK}/{IGNORED}\n"
            f"{plan.git_identity}"
        ),
    }
    os.makedirs("etc", exist_ok=True)
    for name, text in texts.items():
        with open(f"etc/{name}", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)


def _seal() -> None:
    os.makedirs("proc", exist_ok=True)
    mount_processes("proc")
    syscalls.pivot_here()
    _make_read_only("/")


def mount_processes(target: str) -> None:
    """/proc of the caller's process namespace. Must be mounted while another one still is."""
    syscalls.mount("proc", target, "proc", _NOSUID_NODEV | syscalls.MS_NOEXEC)


def _make_read_only(target: str) -> None:
    flags = syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY | _NOSUID_NODEV
    syscalls.mount(None, target, None, flags)
