"""Which paths may a command see and change? Drawn from the workspace, the request, and what every machine has.

Pure but for asking which of the named paths exist. What is not named here does not exist for a command.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.plan import Plan

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/lib32",
    "/libx32",
    "/opt",
    "/etc/alternatives",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
    "/etc/os-release",
    "/etc/fonts",
    "/etc/java",
    "/etc/ImageMagick-6",
    "/etc/ImageMagick-7",
)
PROTECTED = (
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/info/attributes",
    ".gitmodules",
    ".github",
    ".gitlab-ci.yml",
    ".vscode",
    ".idea",
    ".zed",
    ".cursor",
    ".claude",
    ".codex",
    ".gemini",
    ".mcp.json",
    "toolreeve.toml",
    "policy.yaml",
    "policy.yml",
    "tools.yaml",
    "tools.yml",
    "auto_approval_policies.yaml",
    "governors.yaml",
    ".toolreeve",
)
KERNEL = ("/proc", "/sys", "/dev")
SEARCH_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """`readable` are toolchains beyond the system's; `hidden` what no command sees, wherever it lies."""

    workspace: str
    may_write: bool = True
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def contains(self, directory: str) -> bool:
        if directory == self.workspace:
            return True
        real = os.path.realpath(directory)
        return any(_within(real, root) for root in (self.workspace, *self.writable, *self.readable))

    def changed(self) -> tuple[int, ...]:
        """Changes whenever an entry of a folder that holds a protected path does; quick to ask."""
        return tuple(map(_modified, self._folders()))

    def watched(self) -> tuple[object, ...]:
        """Changes whenever a protected path appears, goes, or is replaced: the place must then be built anew."""
        return tuple(_inode(path) for path in self._guarded())

    def _folders(self) -> tuple[str, ...]:
        return (self.workspace, f"{self.workspace}/.git", f"{self.workspace}/.git/info")

    def plan(self, request: ProcessRequest, tier: str, *, uid: int | None, counts: bool) -> Plan:
        writable = self._writable(request)
        readable = [*SYSTEM, *self.readable, *map(os.path.realpath, request.readable)]
        if self.workspace not in writable:
            readable.append(self.workspace)
        for path in (*writable, *readable):
            _refuse_boundless(path)
        protected = [path for path in self._guarded() if any(_within(path, root) for root in writable)]
        return Plan(
            tier=tier,
            network="host" if request.network == "host" else "inside",
            readable=_existing(readable),
            writable=_outermost(writable),
            protected=_existing(protected),
            hidden=_existing(self.hidden),
            programs=_programs(request.allowed_programs) if request.allowed_programs else None,
            uid=uid,
            owner=_owner(self.workspace),
            counts_memory=counts,
            counts_processes=counts and tier == "full",
        )

    def _writable(self, request: ProcessRequest) -> list[str]:
        named = [os.path.realpath(path) for path in request.writable]
        if not self.may_write or request.read_only:
            return []
        return named if request.private_directory else [self.workspace, *self.writable, *named]

    def _guarded(self) -> list[str]:
        return [*(f"{self.workspace}/{name}" for name in PROTECTED), *self.protected]


def _refuse_boundless(path: str) -> None:
    """What holds everything, or the kernel's own files, cannot be shown in part."""
    if path == "/" or any(_within(path, place) for place in KERNEL):
        message = f"{path!r} cannot be shown to a program: it is no bounded part of the files"
        raise ToolError(ErrorCode.PATH_FORBIDDEN, message, suggestions=("name a directory further down",))


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _outermost(paths: Sequence[str]) -> tuple[str, ...]:
    """Without those that lie inside another."""
    kept: list[str] = []
    for path in sorted(set(paths), key=len):
        if not any(_within(path, root) for root in kept):
            kept.append(path)
    return tuple(kept)


def _existing(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if os.path.lexists(path)))


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _owner(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_uid, found.st_gid


def _programs(names: Sequence[str]) -> dict[str, str]:
    """Where each is found, and the file behind it."""
    found: dict[str, str] = {}
    for name in names:
        path = shutil.which(name, path=":".join(SEARCH_PATH))
        if path is None:
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"the allowed program {name!r} is not installed")
        folder = os.path.realpath(os.path.dirname(path))
        found[f"{folder}/{os.path.basename(path)}"] = os.path.realpath(path)
    return found
