"""Layout: paths a command may see and change; its environment.

Pure but for asking which of the named paths exist. What is not named here does not exist for a command.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.process import ProcessRequest
from toolreeve.core.trial import Confinement
from toolreeve.sandbox.integrity.link_trail import follow
from toolreeve.sandbox.plan import Plan, outermost, within

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
KERNEL = ("/proc", "/sys", "/dev")
SEARCH_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
BASE_ENVIRONMENT: Mapping[str, str] = {"PATH": ":".join(SEARCH_PATH), "LANG": "C.UTF-8"}
"""What every program needs; HOME and TMPDIR are the slot's own."""


class CoveredPaths(NamedTuple):
    """Paths in writable roots that are hidden from commands, and those that they may not change. `contents` are the
    bytes that some files show instead of their own. `sensitive` ones are hidden from commands that nobody approved."""

    hidden: Sequence[str] = ()
    guarded: Sequence[str] = ()
    contents: Sequence[tuple[str, bytes]] = ()
    sensitive: Sequence[str] = ()

    def hidden_from(self, confinement: Confinement) -> Sequence[str]:
        return self.hidden if confinement is Confinement.WORK else (*self.hidden, *self.sensitive)


NOTHING = CoveredPaths()


class MorePaths(Protocol):
    """Paths that are looked up late, for that takes time."""

    @property
    def readable(self) -> Sequence[str]: ...

    @property
    def hidden(self) -> Sequence[str]: ...


FindMore = Callable[[], MorePaths | None]


def _nothing_more() -> None:
    """No further paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """`readable` are toolchains beyond the system's; `protected` and `hidden` are paths that no command changes or
    sees, wherever they lie; `guards` is the table that finds more of both in writable roots. `git_identity` are git
    settings for every command. `layer_mb` is how much a command on trial may change; with 0 none can be tried. `more`
    finds further readable and hidden paths when a command is planned."""

    workspace: str
    may_write: bool = True
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    guards: GuardTable | None = None
    git_identity: str = ""
    layer_mb: int = 0
    more: FindMore = _nothing_more

    @property
    def roots(self) -> tuple[str, ...]:
        """The directories that commands may change."""
        return (self.workspace, *self.writable)

    def table(self) -> GuardTable:
        return self.guards or GuardTable(roots=tuple(map(os.path.realpath, self.roots)), secret=self.hidden)

    def contains(self, directory: str) -> bool:
        if directory == self.workspace:
            return True
        real = os.path.realpath(directory)
        return any(within(real, os.path.realpath(root)) for root in (*self.roots, *self.readable))

    def plan(
        self, request: ProcessRequest, tier: str, *, uid: int | None, counts: bool, found: CoveredPaths = NOTHING
    ) -> Plan:
        writable = [self._real(path) for path in self._writable(request)]
        more, secrets = self._more(tier)
        readable = [*self.readable, *more, *map(self._real, request.readable)]
        sources = {path: self._real(path) for path in readable}
        viewed: list[str] = []
        if request.confinement is Confinement.LOOK and self.may_write:
            viewed = [self._real(path) for path in self._roots(request)]
        if self.workspace not in (*writable, *viewed):
            readable.append(self.workspace)
        for path in (*writable, *viewed, *readable, *sources.values()):
            _refuse_boundless(path)
        protected = [path for path in self.protected if any(within(path, root) for root in writable)]
        guarded = [path for path in found.guarded if any(within(path, root) for root in writable)]
        return Plan(
            tier=tier,
            network="host" if request.network == "host" else "inside",
            readable=_existing([*SYSTEM, *readable]),
            writable=outermost(writable),
            viewed=outermost(viewed),
            sources={path: real for path, real in sources.items() if path != real},
            protected=_existing(protected),
            guarded=tuple(guarded),
            hidden=tuple(dict.fromkeys((*self.hidden, *secrets, *found.hidden_from(request.reads)))),
            contents={path: data.decode("latin-1") for path, data in found.contents},
            git_identity=self.git_identity,
            programs=_programs(request.allowed_programs) if request.allowed_programs else None,
            uid=uid,
            owner=_owner(self.workspace),
            counts_memory=counts,
            counts_processes=counts and tier == "full",
            layer_mb=self.layer_mb if request.confinement is Confinement.TRY else 0,
        )

    def _more(self, tier: str) -> tuple[Sequence[str], Sequence[str]]:
        """Further readable and hidden paths. Without mounts to hide them, a path with secrets is left out."""
        more = self.more()
        if more is None:
            return (), ()
        if tier == "full":
            return more.readable, more.hidden
        return [path for path in more.readable if not any(within(each, path) for each in more.hidden)], ()

    def is_written_by(self, request: ProcessRequest) -> bool:
        """Whether it may change files of the host."""
        return request.confinement is not Confinement.TRY and bool(self._writable(request))

    def neutral(self, tier: str, *, uid: int | None, counts: bool) -> Plan:
        """The plan of a sandbox that depends on this machine and on nothing in the workspace."""
        return Plan(
            tier=tier,
            network="inside",
            readable=_existing(SYSTEM),
            writable=(),
            uid=uid,
            counts_memory=counts,
            counts_processes=counts and tier == "full",
        )

    def _writable(self, request: ProcessRequest) -> list[str]:
        return self._roots(request) if self.may_write and request.confinement is not Confinement.LOOK else []

    def _roots(self, request: ProcessRequest) -> list[str]:
        return [*request.writable] if request.private_directory else [*self.roots, *request.writable]

    def _real(self, path: str) -> str:
        """A path without links. A link that commands can change must not decide what they see of the host."""
        links, end = follow(path)
        if end is None:
            raise ToolError(
                ErrorCode.PATH_FORBIDDEN, f"{path!r} cannot be mounted in the sandbox: its links form a loop"
            )
        changeable = [link for link in links if any(within(link, root) for root in self.roots)]
        if changeable and not within(end, self.workspace):
            message = f"{path!r} cannot be mounted in the sandbox: {changeable[0]!r} is a link that commands can change"
            raise ToolError(ErrorCode.PATH_FORBIDDEN, message, suggestions=(f"name {end!r} itself",))
        return end


def _refuse_boundless(path: str) -> None:
    """The root and the kernel's file systems cannot be mounted in part."""
    if path == "/" or any(within(path, kernel) for kernel in KERNEL):
        message = f"{path!r} cannot be mounted in the sandbox: it holds the whole machine or kernel files"
        raise ToolError(ErrorCode.PATH_FORBIDDEN, message, suggestions=("name a directory further down",))


def _existing(paths: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if os.path.lexists(path)))


def _owner(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_uid, found.st_gid


def _programs(names: Sequence[str]) -> dict[str, str]:
    """The path of each program, and the real file behind it."""
    found: dict[str, str] = {}
    for name in names:
        path = shutil.which(name, path=":".join(SEARCH_PATH))
        if path is None:
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"the allowed program {name!r} is not installed")
        folder = os.path.realpath(os.path.dirname(path))
        found[f"{folder}/{os.path.basename(path)}"] = os.path.realpath(path)
    return found
