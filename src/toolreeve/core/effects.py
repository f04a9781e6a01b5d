"""Effects: what a call would do, declared before it runs.

Policy rules match tools or effects.
"""

from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple


class EffectKind(StrEnum):
    __hash__ = str.__hash__  # an enum's own is far slower, and effects are hashed by the hundred

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    EXEC = "exec"
    NET = "net"
    SEND = "send"
    SPEND = "spend"


FILE_EFFECTS = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))
CONTACTS = frozenset((EffectKind.NET, EffectKind.SEND))
"""What reaches a host."""


class Reach(StrEnum):
    """How far an effect on a path goes."""

    __hash__ = str.__hash__

    EXACT = "exact"
    """The target itself."""
    NAMES = "names"
    """Only the target's name and attributes, or the names inside a directory; no content."""
    BELOW = "below"
    """The target and everything below it."""
    MATCHING = "matching"
    """Whatever the target, a shell glob, matches when it runs."""


class Effect(NamedTuple):
    """`target` is the resolved path, host, argv or amount that the effect touches."""

    kind: EffectKind
    target: str
    reach: Reach = Reach.EXACT

    def __str__(self) -> str:
        return f"{self.kind}:{self.target}"

    def touches(self, path: str) -> bool:
        """Whether the effect may reach the content of `path`, an absolute and normal path."""
        match self.reach:
            case Reach.EXACT:
                return self.target == path
            case Reach.NAMES:
                return False
            case Reach.BELOW:
                return self.target in ("/", path) or path.startswith(self.target + "/")
            case Reach.MATCHING:
                return _matches(self.target, path)


def reads(paths: list[str]) -> list[Effect]:
    """A plain read of each; there may be hundreds, so they bypass the named tuple's constructor."""
    new = tuple.__new__
    read = EffectKind.READ
    exact = Reach.EXACT
    return [new(Effect, (read, path, exact)) for path in paths]


def _matches(pattern: str, path: str) -> bool:
    """A glob's `*` stays within one component, except that `**` may span any number of them."""
    wanted = pattern.split("/")
    names = path.split("/")
    if "**" in wanted:
        stem = wanted[: wanted.index("**")]
        return len(names) >= len(stem) and all(map(fnmatchcase, names, stem))
    return len(wanted) == len(names) and all(map(fnmatchcase, names, wanted))
