"""Seccomp filter: which system calls a program may make, with which arguments.

Refused ones fail with EPERM. Calls that this table does not know, and those whose arguments a filter cannot see, fail
with ENOSYS, so that programs fall back to older calls. Calls of another instruction set fail with ENOSYS too.
"""

import ctypes
import struct

from toolreeve.sandbox.kernel import syscalls
from toolreeve.sandbox.kernel.syscall_numbers import AUDIT_ARCH, FIRST_UNKNOWN, NUMBERS

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ARCHITECTURE, _NUMBER, _ARGUMENTS = 4, 0, 16
_ALLOW = 0x7FFF0000
_ERROR = 0x00050000
_EPERM, _EACCES, _EINVAL, _ENOSYS, _EAFNOSUPPORT = 1, 13, 22, 38, 97

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOCK_STREAM, _TYPE_MASK, _TCP = 1, 0xF, 6
_MSG_FASTOPEN = 0x20000000  # connects unseen by Landlock
_NEW_NAMESPACES = 0x7E020000
_SET_ID_BITS = 0o6000
_CREATES = 0o100 | 0o20000000  # O_CREAT, O_TMPFILE
_CLONE_THREAD, _CLONE_FILES = 0x10000, 0x400
_SOL_SOCKET, _SO_SNDBUF, _SO_RCVBUF = 1, 7, 8
_F_SETPIPE_SZ = 1031
_PR_SET_DUMPABLE = 4
_TERMINAL_REQUESTS = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD: typing into another terminal

_REFUSED = [
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "kcmp",
    "pidfd_getfd",
    "keyctl",
    "add_key",
    "request_key",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "swapon",
    "swapoff",
    "reboot",
    "sethostname",
    "setdomainname",
    "iopl",
    "ioperm",
    "init_module",
    "finit_module",
    "delete_module",
    "quotactl",
    "quotactl_fd",
    "acct",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "syslog",
    "vhangup",
    "kexec_load",
    "kexec_file_load",
    "open_by_handle_at",
    "unshare",
    "setns",
    "fanotify_init",
    "move_pages",
    "migrate_pages",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "modify_ldt",
    "uselib",
    "nfsservctl",
    "_sysctl",
    "sysfs",
    "ustat",
    "lookup_dcookie",
    "memfd_secret",
    "process_madvise",
    "process_mrelease",
]
_HIDES_ARGUMENTS = ("clone3", "openat2")
_EXHAUSTS_THE_MACHINE = "io_setup"  # counted for all users together
_HIDES_MEMORY = ("memfd_create", "shmget", "semget", "msgget", "landlock_create_ruleset")
_PINS_PAGES = ("splice", "vmsplice")  # in pipes, a small piece of a large page each
_MODE_ARGUMENT = {"chmod": 1, "fchmod": 1, "creat": 1, "mknod": 1, "fchmodat": 2, "fchmodat2": 2, "mknodat": 2}
_OPEN_ARGUMENTS = {"open": (1, 2), "openat": (2, 3)}
_SEND_FLAGS_ARGUMENT = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}


def _argument(index: int) -> Instruction:
    return _LOAD, 0, 0, _ARGUMENTS + 8 * index


def _fail(error: int) -> Instruction:
    return _RETURN, 0, 0, _ERROR | error


_PASS: Instruction = (_RETURN, 0, 0, _ALLOW)


def _pass_if(value: int) -> list[Instruction]:
    return [(_EQUAL, 0, 1, value), _PASS]


def _refuse_bits(argument: int, bits: int) -> list[Instruction]:
    return [_argument(argument), (_ANY_BIT, 0, 1, bits), _fail(_EPERM), _PASS]


def _sockets(*, internet: bool, unix: bool) -> list[Instruction]:
    """Families by name. Of the internet only plain TCP: neither UDP, raw, nor MPTCP, which Landlock does not see."""
    steps: list[Instruction] = [_argument(0)]
    if unix:
        steps += _pass_if(_AF_UNIX)
    if not internet:
        return [*steps, _fail(_EAFNOSUPPORT)]
    steps += _pass_if(_AF_NETLINK)
    steps += [(_EQUAL, 2, 0, _AF_INET), (_EQUAL, 1, 0, _AF_INET6), _fail(_EAFNOSUPPORT)]
    steps += [_argument(1), (_AND, 0, 0, _TYPE_MASK), (_EQUAL, 1, 0, _SOCK_STREAM), _fail(_EACCES)]
    return [*steps, _argument(2), *_pass_if(0), *_pass_if(_TCP), _fail(_EACCES)]


def _opens(flags: int, mode: int) -> list[Instruction]:
    """The mode counts only where a file may come to be."""
    creates = [_argument(flags), (_ANY_BIT, 1, 0, _CREATES), _PASS]
    return [*creates, *_refuse_bits(mode, _SET_ID_BITS)]


def _clones() -> list[Instruction]:
    """No namespaces, and no thread with its own descriptor table, which would be counted nowhere."""
    thread = [(_AND, 0, 0, _CLONE_THREAD | _CLONE_FILES), (_EQUAL, 0, 1, _CLONE_THREAD), _fail(_EPERM)]
    return [_argument(0), *thread, *_refuse_bits(0, _NEW_NAMESPACES)]


def _refuse_pair(first: tuple[int, int], second: int, *values: int) -> list[Instruction]:
    """Refuse where one argument has this value and another has one of several."""
    argument, value = first
    steps = [_argument(argument), (_EQUAL, 1, 0, value), _PASS, _argument(second)]
    for each in values:
        steps += [(_EQUAL, 0, 1, each), _fail(_EPERM)]
    return [*steps, _PASS]


def _uncounted() -> dict[str, list[Instruction]]:
    """Calls that take memory which only a control group can count, or that hide it."""
    cases = {name: [_fail(_ENOSYS)] for name in _HIDES_MEMORY}
    cases |= {name: [_fail(_EINVAL)] for name in _PINS_PAGES}
    cases["fcntl"] = [_argument(1), (_EQUAL, 0, 1, _F_SETPIPE_SZ), _fail(_EPERM), _PASS]
    cases["setsockopt"] = _refuse_pair((1, _SOL_SOCKET), 2, _SO_SNDBUF, _SO_RCVBUF)
    cases["prctl"] = _refuse_pair((0, _PR_SET_DUMPABLE), 1, 0)
    return cases


def _terminal() -> list[Instruction]:
    steps = [_argument(1)]
    for request in _TERMINAL_REQUESTS:
        steps += [(_EQUAL, 0, 1, request), _fail(_EPERM)]
    return [*steps, _PASS]


def _cases(*, network: str, unix: bool, hidden_memory: bool) -> dict[str, list[Instruction]]:
    cases: dict[str, list[Instruction]] = {name: [_fail(_EPERM)] for name in _REFUSED}
    cases |= {name: [_fail(_ENOSYS)] for name in _HIDES_ARGUMENTS}
    cases[_EXHAUSTS_THE_MACHINE] = [_fail(_ENOSYS)]
    cases["clone"] = _clones()
    cases["ioctl"] = _terminal()
    cases |= {name: _refuse_bits(argument, _SET_ID_BITS) for name, argument in _MODE_ARGUMENT.items()}
    cases |= {name: _opens(*arguments) for name, arguments in _OPEN_ARGUMENTS.items()}
    if network != "host":
        cases["socket"] = _sockets(internet=network == "guarded", unix=unix)
        cases["socketpair"] = [_argument(0), *_pass_if(_AF_UNIX), _fail(_EAFNOSUPPORT)]
        cases |= {name: _refuse_bits(argument, _MSG_FASTOPEN) for name, argument in _SEND_FLAGS_ARGUMENT.items()}
    else:
        cases["socket"] = _host_sockets()
    if not hidden_memory:
        cases |= _uncounted()
    return cases


def _host_sockets() -> list[Instruction]:
    """Network `host` means TCP, UDP and Unix sockets; not raw packets, nor sockets of virtual machines."""
    steps = [_argument(0)]
    for family in (_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK):
        steps += _pass_if(family)
    return [*steps, _fail(_EAFNOSUPPORT)]


def assemble(*, network: str, unix: bool = True, hidden_memory: bool = True) -> bytes:
    """The filter's code. `unix` allows Unix sockets; `hidden_memory` allows memory that belongs to no process, which
    only a control group can count."""
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, AUDIT_ARCH),
        _fail(_ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, FIRST_UNKNOWN),  # later calls, and the x32 variants of all
        _fail(_ENOSYS),
    ]
    for name, body in _cases(network=network, unix=unix, hidden_memory=hidden_memory).items():
        if name in NUMBERS:
            program += [(_EQUAL, 0, len(body), NUMBERS[name]), *body]
    program.append(_PASS)
    return b"".join(struct.pack("=HBBI", code, yes, no, operand) for code, yes, no, operand in program)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def enforce(code: bytes) -> None:
    """For this process and all it starts, for ever. `no_new_privs` must be set."""
    program = _Program(len(code) // 8, code)
    syscalls.prctl(syscalls.PR_SET_SECCOMP, syscalls.SECCOMP_MODE_FILTER, ctypes.addressof(program))
