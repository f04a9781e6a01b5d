"""Harvest: what a trial changed, as an approval shows and covers it.

A value: everything is as it was when the layer was read, and the manifest's digest names exactly these changes.
"""

import hashlib
import json
import os
import stat
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.trial import Layer
from toolreeve.trial.tree import FileIdentity


class Alteration(StrEnum):
    """TOUCH: only the times differ, which counts as unchanged. MODE: only the permissions. LINK: one more name."""

    CREATE = "create"
    MODIFY = "modify"
    MODE = "mode"
    TOUCH = "touch"
    DELETE = "delete"
    LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeChange:
    """One changed path, relative to the root.

    `before` and `after` are fingerprints, None where there is nothing. `new` and `old` are what was found in the layer
    and in the real tree. `inside` is the outermost new or replaced directory that it lies in. `links_to` is the first
    name of a file with several. `count` is the number of entries in a directory that goes, and `lost` are the files of
    the real tree that go with this change. `note` is for the person.
    """

    kind: Alteration
    path: str
    before: str | None
    after: str | None
    new: os.stat_result | None = field(repr=False)
    old: os.stat_result | None = field(repr=False)
    inside: str = ""
    links_to: str = ""
    note: str = ""
    count: int = 0
    lost: tuple[str, ...] = ()
    conflict: bool = False
    scratch: bool = False

    @property
    def mode(self) -> int:
        """The type and permissions of what is there now, or of what is gone."""
        found = self.new if self.kind is not Alteration.DELETE else self.old
        return 0 if found is None else found.st_mode

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def removes_directory(self) -> bool:
        """Whether a directory of the real tree goes with everything below it."""
        return self.kind is not Alteration.MODE and self.old is not None and stat.S_ISDIR(self.old.st_mode)

    @property
    def is_replacement(self) -> bool:
        """Whether something of the real tree makes way for it as a whole."""
        return self.kind is Alteration.MODIFY and self.old is not None

    def to_manifest(self) -> dict[str, str | int | None]:
        shown: dict[str, str | int | None] = {"kind": self.kind, "path": self.path}
        shown |= {"before": self.before, "after": self.after, "mode": self.mode}
        return shown | ({"link": self.links_to} if self.links_to else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A path that cannot be committed, and why; unless it is scratch, nothing of the trial can."""

    path: str
    reason: str
    scratch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """`changes` are sorted by path and include scratch, as `all_refused` does. `untouched` are real files that a new
    name links to, `ignored` the files that are scratch because git ignores them."""

    layer: Layer
    changes: tuple[TreeChange, ...]
    all_refused: tuple[Refused, ...] = ()
    untouched: Mapping[str, FileIdentity] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[TreeChange, ...]:
        """The changes that matter: neither scratch nor only touched."""
        return tuple(each for each in self.changes if not each.scratch and each.kind is not Alteration.TOUCH)

    @property
    def scratch(self) -> tuple[TreeChange, ...]:
        return tuple(each for each in self.changes if each.scratch)

    @property
    def refused(self) -> tuple[Refused, ...]:
        return tuple(each for each in self.all_refused if not each.scratch)

    @property
    def conflicts(self) -> tuple[TreeChange, ...]:
        """Those that the real tree changed meanwhile as well."""
        return tuple(each for each in self.kept if each.conflict)

    @property
    def problem(self) -> str:
        """Why nothing of it can be committed; empty if it can."""
        if self.layer.problem:
            return self.layer.problem
        if refused := self.refused:
            more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
            return f"{refused[0].path!r}: {refused[0].reason}{more}"
        if conflicts := self.conflicts:
            return f"{conflicts[0].path!r} was changed meanwhile by another program"
        return ""

    @property
    def size(self) -> int:
        """The bytes of all new content."""
        return sum(each.new.st_size for each in self.kept if each.new is not None and stat.S_ISREG(each.mode))

    def with_scratch(self, paths: Collection[str]) -> "Harvest":
        """Also these paths, which git ignores, and what lies below them, are scratch."""
        known = frozenset(paths)
        ignored = tuple(each.path for each in self.kept if _is_among(each.path, known) and not each.is_directory)
        changes = (replace(each, scratch=True) if _is_among(each.path, known) else each for each in self.changes)
        refused = (replace(each, scratch=True) if _is_among(each.path, known) else each for each in self.all_refused)
        return replace(self, changes=tuple(changes), all_refused=tuple(refused), ignored=ignored)

    def effects(self) -> tuple[Effect, ...]:
        """What was observed, for the rules of the policy."""
        return tuple(effect for each in self.kept for effect in _effects(each, self.layer.root))

    @property
    def deleted(self) -> tuple[str, ...]:
        """The files that will be gone; one that was made again is only changed."""
        there = {each.path for each in self.kept if each.kind is not Alteration.DELETE}
        lost = (path for each in self.kept for path in each.lost if path == each.path or path not in there)
        return tuple(dict.fromkeys(lost))

    def manifest(self) -> Sequence[Mapping[str, str | int | None]]:
        """Each change with the digests before and after."""
        return [each.to_manifest() for each in self.kept]

    def digest(self) -> str:
        """The SHA-256 of the manifest, in hexadecimal. An approval that covers it covers exactly these bytes."""
        lines = json.dumps([self.layer.root, *self.manifest()], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(lines.encode()).hexdigest()

    def choose(self, paths: Collection[str]) -> tuple[TreeChange, ...]:
        """These changes, with those that they cannot go without, sorted by path. Raises KeyError for an unknown path.

        An entry of a new directory needs the directories around it; of a replaced one, all that replaces it. Names of
        one file go together.
        """
        known = {each.path: each for each in self.changes}
        together = self._groups()
        chosen: dict[str, TreeChange] = {}
        ahead = list(paths)
        while ahead:
            path = ahead.pop()
            if path not in chosen:
                chosen[path] = known[path]
                ahead += together.get(path, ())
                if known[path].inside:
                    ahead += (each for each in parents(path) if each in known)
        return tuple(chosen[path] for path in sorted(chosen))

    def _groups(self) -> Mapping[str, Sequence[str]]:
        """For a path, the others that must go with it."""
        replaced = {each.path for each in self.changes if each.is_replacement and each.is_directory}
        together: defaultdict[str, list[str]] = defaultdict(list)
        for each in self.changes:
            if each.inside in replaced and not each.scratch:
                together[each.inside].append(each.path)
            if each.links_to and each.links_to not in self.untouched:
                together[each.links_to].append(each.path)
                together[each.path].append(each.links_to)
        return together


def parents(path: str) -> Iterator[str]:
    """The directories around a relative path, innermost first."""
    while path := path.rpartition("/")[0]:
        yield path


def _is_among(path: str, known: frozenset[str]) -> bool:
    return path in known or any(each in known for each in parents(path))


def _effects(change: TreeChange, root: str) -> Iterator[Effect]:
    target = os.path.join(root, change.path)
    reach = Reach.BELOW if change.removes_directory else Reach.EXACT
    if change.kind is Alteration.DELETE or change.lost:
        yield Effect(EffectKind.DELETE, target, reach)
    if change.kind is not Alteration.DELETE:
        yield Effect(EffectKind.WRITE, target, reach)
