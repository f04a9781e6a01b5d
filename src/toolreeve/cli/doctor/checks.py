"""Checks of `doctor` on the machine, the configuration and the directories."""

import os
import platform
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.core.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from toolreeve.config import Configuration

NETWORK_FILESYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "afs", "lustre"}
)
MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs"})


class Status(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """`fix` is empty if there is nothing to do."""

    area: str
    name: str
    status: Status
    found: str
    fix: str = ""

    def to_dict(self) -> dict[str, str]:
        return {
            "area": self.area,
            "name": self.name,
            "status": self.status.value,
            "found": self.found,
            "fix": self.fix,
        }


def check_machine() -> Iterator[Check]:
    from toolreeve.core.openat2 import has_openat2

    yield Check("machine", "python", Status.OK, f"{platform.python_version()} at {sys.executable}")
    yield Check("machine", "kernel", Status.OK, f"{platform.system()} {platform.release()}")
    if has_openat2():
        yield Check("machine", "openat2", Status.OK, "available: the kernel resolves paths beneath the workspace")
    else:
        slower = "not available: paths are resolved directory by directory, as safe but slower"
        yield Check("machine", "openat2", Status.WARN, slower, fix="use Linux 5.6 or later, and permit openat2")
    yield _check_terminal()


def _check_terminal() -> Check:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        absent = (
            "none: questions of `mcp` and `serve` wait for the console or `toolreeve approvals`, others are refused"
        )
        return Check("machine", "terminal", Status.WARN, absent, fix="run in a terminal, or allow calls with a rule")
    return Check("machine", "terminal", Status.OK, "available for approval requests")


def check_configuration(found: "Configuration") -> Iterator[Check]:
    for name, path in (("user file", found.user_file), ("project file", found.project_file)):
        text = f"{path}" if path.exists() else f"none at {path}; defaults apply"
        yield Check("configuration", name, Status.OK, text)
    for notice in found.notices:
        yield Check("configuration", "ignored", Status.WARN, notice)
    if found.code is not None and found.code.trusted:
        runs = ", ".join((*found.code.files, *found.code.commands))
        yield Check("configuration", "trust", Status.OK, f"trusted to run: {runs}")


def check_secrets(found: "Configuration") -> Iterator[Check]:
    """Where secrets are kept, and whether that answers. Opens the keyring, if there is one."""
    source = found.secret_source
    try:
        count = len(source.store.list())
    except (ToolError, ConfigError) as problem:
        fix = 'unlock the keyring, or set secrets.store = "file"'
        yield Check("configuration", "secrets", Status.FAIL, str(problem), fix=fix)
        return
    yield Check("configuration", "secrets", Status.OK, f"{source.announcement} ({count} there)")


def check_toolchains(found: "Configuration") -> Iterator[Check]:
    """Which programs of the user's own PATH commands can use."""
    from toolreeve.config.toolchains import find_toolchains

    area = "toolchains"
    toolchains = find_toolchains(found)
    visible = toolchains.visible()
    for entry in toolchains.path:
        yield Check(area, Path(entry).parent.name.lstrip(".") or entry, Status.OK, entry)
    if not toolchains.path:
        fix = "" if found.settings.commands.toolchains else "set commands.toolchains to true"
        yield Check(area, "PATH", Status.OK, "nothing below your home directory or /opt: only system programs", fix=fix)
    if visible.hidden:
        yield Check(area, "secrets", Status.OK, f"{len(visible.hidden)} hidden, such as {visible.hidden[0]}")
    for path in visible.too_large:
        large = f"{path} is not visible: it is too large to be searched for secrets"
        yield Check(area, "left out", Status.WARN, large, fix="name the directory of the program in sandbox.readable")
    for path, reason in toolchains.left_out:
        yield Check(area, "left out", Status.WARN, f"{path}: {reason}", fix="take it off your PATH, or ignore this")


def check_directories(found: "Configuration", *, fix: bool) -> Iterator[Check]:
    yield _check_workspace(found)
    state = Path(found.settings.state.dir)
    if fix:
        _repair(state)
    yield _check_state(state)
    yield _check_filesystem(state)


def _check_workspace(found: "Configuration") -> Check:
    area = "directories"
    name = "workspace"
    path = Path(found.settings.workspace.dir)
    if not os.access(path, os.R_OK | os.X_OK):
        return Check(area, name, Status.FAIL, f"{path} is not readable", fix=f"chmod u+rx {path}")
    if found.settings.workspace.allow_write and not os.access(path, os.W_OK):
        return Check(area, name, Status.WARN, f"{path} is not writable", fix=f"chmod u+w {path}")
    if path == Path(path.anchor) or str(path) == found.home:
        broad = f"{path} is very broad for a workspace"
        return Check(area, name, Status.WARN, broad, fix="start in a project directory, or pass --workspace")
    return Check(area, name, Status.OK, str(path))


def _repair(state: Path) -> None:
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(state.stat().st_mode) & 0o077:
        state.chmod(0o700)


def _check_state(path: Path) -> Check:
    area = "directories"
    name = "state"
    if not path.exists():
        above = next(parent for parent in path.parents if parent.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return Check(area, name, Status.OK, f"{path} will be created by the first call")
        return Check(area, name, Status.FAIL, f"{path} cannot be created", fix=f"make {above} writable")
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return Check(area, name, Status.FAIL, f"{path} is not a directory", fix="move it away, or set state.dir")
    if found.st_uid != os.geteuid():
        return Check(area, name, Status.FAIL, f"{path} is owned by another user", fix="set state.dir to one you own")
    if stat.S_IMODE(found.st_mode) & 0o077:
        return Check(
            area, name, Status.FAIL, f"{path} is accessible to other users", fix="run `toolreeve doctor --fix`"
        )
    if not os.access(path, os.W_OK | os.X_OK):
        return Check(area, name, Status.FAIL, f"{path} is not writable", fix=f"chmod u+rwx {path}")
    return Check(area, name, Status.OK, f"{path}, private to you")


def _check_filesystem(path: Path) -> Check:
    area = "directories"
    name = "filesystem"
    kind = filesystem_of(path)
    if kind in NETWORK_FILESYSTEMS:
        shared = f"{kind}: database locks and shared memory are unreliable there"
        return Check(area, name, Status.FAIL, shared, fix="set state.dir to a local disk")
    if kind in MEMORY_FILESYSTEMS:
        lost = f"{kind}: the record is lost on restart"
        return Check(area, name, Status.WARN, lost, fix="set state.dir to a disk")
    return Check(area, name, Status.OK, f"{kind or 'unknown'} holds the state directory")


def filesystem_of(path: Path, mounts: str = "/proc/self/mounts") -> str:
    """The type of the file system that holds, or would hold, a path; empty if unknown."""
    try:
        lines = Path(mounts).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    rows = [line.split() for line in lines]
    types = {_unescape(row[1]): row[2] for row in rows if len(row) > 2}
    resolved = path.resolve()
    return next((types[str(each)] for each in (resolved, *resolved.parents) if str(each) in types), "")


def _unescape(text: str) -> str:
    """The mount table escapes blanks as octal numbers."""
    return text.encode().decode("unicode_escape") if "\\" in text else text
