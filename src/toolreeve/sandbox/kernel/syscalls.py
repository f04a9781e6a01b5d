"""System calls that Python does not offer, by ctypes: namespaces, mounts, capabilities.

A failing call raises OSError with its name. Only single-threaded processes may call `clone`.
"""

import ctypes
import os

_MACHINE = os.uname().machine
X86 = _MACHINE == "x86_64"
KNOWN_MACHINE = X86 or _MACHINE in ("aarch64", "arm64")

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_PIDFD = 0x1000
CLONE_PARENT = 0x8000
SIGCHLD = 17

PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

_NUMBERS = {
    "open_tree": 428,
    "move_mount": 429,
    "clone3": 435,
    "openat2": 437,
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "pivot_root": 155 if X86 else 41,
    "capset": 126 if X86 else 91,
}

_library = ctypes.CDLL(None, use_errno=True)
# Keeps the GIL during the call: a child made by clone must find it held, as after fork.
_library_with_gil = ctypes.PyDLL(None, use_errno=True)
_syscall = _library_with_gil.syscall
_syscall.restype = ctypes.c_long


def call(name: str, *arguments: object) -> int:
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(_syscall(ctypes.c_long(_NUMBERS[name]), *wide), name)


def _checked(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def prctl(option: int, value: int = 0, more: int = 0) -> None:
    words = [ctypes.c_ulong(each) for each in (value, more, 0, 0)]
    _checked(_library.prctl(option, *words), f"prctl {option}")


def unshare(flags: int) -> None:
    _checked(_library.unshare(flags), "unshare")


def set_host_name(name: bytes) -> None:
    _checked(_library.sethostname(name, len(name)), "sethostname")


class _CloneArguments(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "flags",
            "pidfd",
            "child_tid",
            "parent_tid",
            "exit_signal",
            "stack",
            "stack_size",
            "tls",
            "set_tid",
            "set_tid_size",
            "cgroup",
        )
    ]


def clone(flags: int, exit_signal: int = SIGCHLD) -> tuple[int, int]:
    """Fork with flags: the child's pid, 0 in the child itself, and a pidfd (-1 unless asked for)."""
    pidfd = ctypes.c_int(-1)
    arguments = _CloneArguments(flags=flags, exit_signal=0 if flags & CLONE_PARENT else exit_signal)
    if flags & CLONE_PIDFD:
        arguments.pidfd = ctypes.addressof(pidfd)
    return call("clone3", ctypes.byref(arguments), ctypes.sizeof(arguments)), pidfd.value


_CapabilityHeader = ctypes.c_uint32 * 2
_CapabilitySets = ctypes.c_uint32 * 6


def drop_capabilities() -> None:
    """Drop every capability, also from the bounding set."""
    for number in range(64):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError:
            break
    header = _CapabilityHeader(0x20080522, 0)
    call("capset", ctypes.byref(header), ctypes.byref(_CapabilitySets()))


MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SLAVE = 1 << 19
MS_SHARED = 1 << 20
MNT_DETACH = 2

ATTR_RDONLY = 1
ATTR_NOSUID = 2
ATTR_NODEV = 4
ATTR_NOEXEC = 8
ATTR_IDMAP = 0x100000

AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_SYMLINK_NOFOLLOW = 0x100
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_MOVE_MOUNT_T_EMPTY_PATH = 0x40
_RESOLVE_NO_LINKS = 0x02 | 0x04  # neither those of /proc nor others


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, options: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    result = _library.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3])
    _checked(result, f"mount {kind or source} on {target}")


def unmount(target: str) -> None:
    _checked(_library.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_here() -> None:
    """Make the current directory the root, and unmount the old one."""
    call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    unmount(".")
    os.chdir("/")


class _OpenHow(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "mode", "resolve")]


def open_path(path: str, flags: int = 0) -> int:
    """An O_PATH descriptor of an absolute path. A link anywhere in it is an error, not followed (ELOOP)."""
    how = _OpenHow(os.O_PATH | os.O_CLOEXEC | flags, 0, _RESOLVE_NO_LINKS)
    try:
        return call("openat2", -1, ctypes.c_char_p(os.fsencode(path)), ctypes.byref(how), ctypes.sizeof(how))
    except OSError as problem:
        raise OSError(problem.errno, os.strerror(problem.errno or 0), path) from None


def detached_tree(path: str, directory: int = AT_FDCWD) -> int:
    """A copy of the mounts at a path, not attached yet. A link at its end is copied itself, not followed.

    With an empty path, the descriptor `directory` is the source itself.
    """
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE | _AT_SYMLINK_NOFOLLOW
    if not path:
        flags |= _AT_EMPTY_PATH
    return call("open_tree", directory, ctypes.c_char_p(os.fsencode(path)), flags)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def set_mount(tree: int, attributes: int, user_namespace: int = -1) -> None:
    """Set attributes of a detached tree, and end its propagation with the original."""
    if user_namespace >= 0:
        attributes |= ATTR_IDMAP
    wanted = _MountAttributes(attributes, 0, MS_PRIVATE, max(user_namespace, 0))
    flags = _AT_EMPTY_PATH | _AT_RECURSIVE
    call("mount_setattr", tree, ctypes.c_char_p(b""), flags, ctypes.byref(wanted), ctypes.sizeof(wanted))


def attach_tree(tree: int, target: str, directory: int = AT_FDCWD) -> None:
    """Onto a path, whose last link is not followed; with an empty path, onto the descriptor `directory` itself."""
    flags = _MOVE_MOUNT_F_EMPTY_PATH
    if not target:
        flags |= _MOVE_MOUNT_T_EMPTY_PATH
    call("move_mount", tree, ctypes.c_char_p(b""), directory, ctypes.c_char_p(os.fsencode(target)), flags)
