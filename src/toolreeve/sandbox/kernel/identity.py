"""Uids of commands, and user namespaces that map them. Never root.

Commands run as an unused uid that seems to own the writable files, or as the user. An id map must be written from
outside the namespace or by the process that just made it, and once only.
"""

import contextlib
import errno
import os

from toolreeve.sandbox.kernel import syscalls

LAST_ID = 65533
INOTIFY = {"instances": 32, "watches": 16384}
"""The most that all programs in a user namespace may use together: often the user has only 128 in all."""


def write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def enter_user_namespace(flags: int = 0) -> None:
    """A user namespace in which we keep our own id. It gives every capability over what is made in it."""
    uid, gid = os.geteuid(), os.getegid()
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER | flags)
    except OSError as problem:
        if problem.errno == errno.ENOSPC and _is_disabled():  # else there are too many at the moment
            raise PermissionError(errno.EPERM, "user.max_user_namespaces is 0") from None
        raise
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{uid} {uid} 1")
    write("/proc/self/gid_map", f"{gid} {gid} 1")
    for name, most in INOTIFY.items():
        with contextlib.suppress(OSError):  # where /proc/sys is read-only; `toolreeve doctor` says so
            write(f"/proc/sys/user/max_inotify_{name}", str(most))


def _is_disabled() -> bool:
    with open("/proc/sys/user/max_user_namespaces") as file:
        return int(file.read()) == 0


def mapping_namespace(owner: tuple[int, int], uid: int) -> int:
    """A user namespace, as a descriptor, that maps files of `owner` to `uid`; other files keep their owners."""
    waiting, done = os.pipe()
    pid, _ = syscalls.clone(syscalls.CLONE_NEWUSER)
    if pid == 0:
        os.close(done)
        os.read(waiting, 1)
        os._exit(0)
    os.close(waiting)
    try:
        write(f"/proc/{pid}/uid_map", _extents(owner[0], uid))
        write(f"/proc/{pid}/gid_map", _extents(owner[1], uid))
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(done)
        os.waitpid(pid, 0)


def _extents(owner: int, shown: int) -> str:
    lines = [f"{owner} {shown} 1"]
    if owner > 0:
        lines.append(f"0 0 {min(owner, LAST_ID)}")
    if owner < LAST_ID:
        lines.append(f"{owner + 1} {owner + 1} {LAST_ID - owner}")
    return "\n".join(lines) + "\n"


def become(uid: int) -> None:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # else /proc/self would belong to root
