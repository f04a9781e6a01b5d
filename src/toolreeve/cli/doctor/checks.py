"""What does this machine offer, what is configured, and are the places we need in order?"""

import os
import platform
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolreeve.config import Configuration

NETWORKED = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs", "afs", "lustre"})
FORGETFUL = frozenset({"tmpfs", "ramfs"})


class Status(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """`fix` says what to do; empty where nothing is to be done."""

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


def machine() -> Iterator[Check]:
    from toolreeve.guard.files.openat2 import has_openat2

    yield Check("machine", "python", Status.OK, f"{platform.python_version()} at {sys.executable}")
    yield Check("machine", "kernel", Status.OK, f"{platform.system()} {platform.release()}")
    if has_openat2():
        yield Check("machine", "openat2", Status.OK, "paths are resolved beneath the workspace by the kernel")
    else:
        slower = "not offered: paths are walked directory by directory, as safe and slower"
        yield Check("machine", "openat2", Status.WARN, slower, fix="use Linux 5.6 or later, and let openat2 through")
    yield _terminal()


def _terminal() -> Check:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        absent = "none: calls that must be asked about are refused"
        return Check("machine", "terminal", Status.WARN, absent, fix="run in a terminal, or allow by a rule")
    return Check("machine", "terminal", Status.OK, "people can be asked")


def configuration(found: "Configuration") -> Iterator[Check]:
    for name, path in (("user file", found.user_file), ("project file", found.project_file)):
        text = f"{path}" if path.exists() else f"none at {path}; defaults hold"
        yield Check("configuration", name, Status.OK, text)
    for notice in found.notices:
        yield Check("configuration", "passed over", Status.WARN, notice)
    if found.code is not None and found.code.trusted:
        yield Check(
            "configuration", "trust", Status.OK, f"runs: {', '.join((*found.code.files, *found.code.commands))}"
        )


def places(found: "Configuration", *, fix: bool) -> Iterator[Check]:
    yield _workspace(found)
    state = Path(found.settings.state.dir)
    if fix:
        _mend(state)
    yield _state(state)
    yield _filesystem(state)


def _workspace(found: "Configuration") -> Check:
    path, wants_write = Path(found.settings.workspace.dir), found.settings.workspace.allow_write
    if not os.access(path, os.R_OK | os.X_OK):
        return Check("places", "workspace", Status.FAIL, f"{path} cannot be read", fix=f"chmod u+rx {path}")
    if wants_write and not os.access(path, os.W_OK):
        return Check("places", "workspace", Status.WARN, f"{path} cannot be written", fix=f"chmod u+w {path}")
    if path == Path(path.anchor) or str(path) == found.home:
        wide = f"{path} is very wide for a workspace"
        return Check("places", "workspace", Status.WARN, wide, fix="start in a project's directory, or use --workspace")
    return Check("places", "workspace", Status.OK, str(path))


def _mend(state: Path) -> None:
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    if stat.S_IMODE(state.stat().st_mode) & 0o077:
        state.chmod(0o700)


def _state(path: Path) -> Check:
    name, mend = "state", "run `toolreeve doctor --fix`"
    if not path.exists():
        above = next(parent for parent in path.parents if parent.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return Check("places", name, Status.OK, f"{path} will be created at the first call")
        return Check("places", name, Status.FAIL, f"{path} cannot be created", fix=f"make {above} writable for you")
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return Check("places", name, Status.FAIL, f"{path} is not a directory", fix="move it away, or set state.dir")
    if found.st_uid != os.geteuid():
        return Check("places", name, Status.FAIL, f"{path} belongs to another user", fix="set state.dir to your own")
    if stat.S_IMODE(found.st_mode) & 0o077:
        return Check("places", name, Status.FAIL, f"{path} is open to other users", fix=mend)
    if not os.access(path, os.W_OK | os.X_OK):
        return Check("places", name, Status.FAIL, f"{path} cannot be written", fix=f"chmod u+rwx {path}")
    return Check("places", name, Status.OK, f"{path}, closed to other users")


def _filesystem(path: Path) -> Check:
    kind = filesystem_of(path)
    if kind in NETWORKED:
        shared = f"{kind}: locks and shared memory of the database are not reliable there"
        return Check("places", "filesystem", Status.FAIL, shared, fix="set state.dir to a local disk")
    if kind in FORGETFUL:
        lost = f"{kind}: the record is lost when the machine restarts"
        return Check("places", "filesystem", Status.WARN, lost, fix="set state.dir to a disk")
    return Check("places", "filesystem", Status.OK, f"{kind or 'unknown'} under the state directory")


def filesystem_of(path: Path, mounts: str = "/proc/self/mounts") -> str:
    """The type of the file system that a path is, or would be, on; empty where the system does not tell."""
    try:
        lines = Path(mounts).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    fields = [line.split() for line in lines]
    held = {_unescaped(field[1]): field[2] for field in fields if len(field) > 2}
    resolved = path.resolve()
    return next((held[str(place)] for place in (resolved, *resolved.parents) if str(place) in held), "")


def _unescaped(text: str) -> str:
    """Spaces and the like stand as octal numbers in the table of mounts."""
    return text.encode().decode("unicode_escape") if "\\" in text else text
