"""Reads the layer of a trial beside the real tree.

Works by descriptors, follows no link and is bounded. Whiteouts and notes of overlayfs are read from where the kernel
keeps them. A command cannot forge them through the mount, and what does not belong there is refused, not interpreted.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from toolreeve.core.fingerprints import file_fingerprint, link_fingerprint, size_fingerprint
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.trial import Layer
from toolreeve.trial import refusals, tree
from toolreeve.trial.harvest import Alteration, Harvest, Refused, TreeChange
from toolreeve.trial.tree import FileIdentity

MAX_CHANGES = 20_000
LARGEST_COMPARED = 64 << 20

IsScratch = Callable[[str], bool]


def read_layer(layer: Layer, guards: GuardTable, is_scratch: IsScratch = lambda _: False) -> Harvest:
    """What the trial changed. `is_scratch` gets paths relative to the root; what lies below scratch is scratch.

    Blocks. The layer stays open: it is needed for the diff and the commit. Raises OSError if the root cannot be read.
    """
    lower = os.open(layer.root, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return _LayerReader(layer, lower, guards, is_scratch).read()
    finally:
        os.close(lower)


class _Folder(NamedTuple):
    """A directory of the layer to read. `inside`: the outermost directory around it that is new as a whole."""

    path: str
    inside: str
    scratch: bool


@dataclass(slots=True)
class _Entry:
    """One entry of the layer, while it is looked at. `lower` is the real directory, if there is one."""

    name: str
    path: str
    upper: int
    lower: int | None
    new: os.stat_result
    old: os.stat_result | None
    folder: _Folder
    kind: Alteration | None = None
    before: str | None = None
    after: str | None = None
    links_to: str = ""
    notes: list[str] = field(default_factory=list)
    count: int = 0
    lost: list[str] = field(default_factory=list)
    conflict: bool = False

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.new.st_mode)

    @property
    def is_whiteout(self) -> bool:
        return stat.S_ISCHR(self.new.st_mode) and self.new.st_rdev == 0

    @property
    def is_merged(self) -> bool:
        return self.old is not None and stat.S_ISDIR(self.old.st_mode) and self.is_directory


class _Refusal(Exception):
    """Why an entry cannot be committed."""


class _LayerReader:
    def __init__(self, layer: Layer, lower: int, guards: GuardTable, is_scratch: IsScratch) -> None:
        self._layer = layer
        self._lower = lower
        self._refusals = refusals.Refusals(guards)
        self._is_scratch = is_scratch
        owner = os.fstat(lower)
        self._owner = (owner.st_uid, owner.st_gid)
        self._changes: list[TreeChange] = []
        self._refused: list[Refused] = []
        self._first_names: dict[int, str] = {}
        self._untouched: dict[str, FileIdentity] = {}
        self._ahead: list[_Folder] = [_Folder("", "", scratch=False)]

    def read(self) -> Harvest:
        if os.fstat(self._layer.upper).st_mode != os.fstat(self._lower).st_mode:
            self._refused.append(Refused(path=".", reason="the mode of the root itself was changed"))
        try:
            while self._ahead:
                self._read_folder(self._ahead.pop())
        except tree.TooMany as excess:
            self._refused.insert(0, Refused(path=".", reason=f"the trial changed too much: {excess}"))
        return Harvest(
            layer=self._layer,
            changes=tuple(sorted(self._changes, key=lambda each: each.path)),
            all_refused=tuple(self._refused),
            untouched=self._untouched,
        )

    def _read_folder(self, folder: _Folder) -> None:
        if folder.path.count("/") >= tree.MAX_DEPTH:
            raise tree.TooMany(f"deeper than {tree.MAX_DEPTH} directories")
        with tree.directory_at(self._layer.upper, folder.path) as upper:
            if folder.inside:
                self._read_entries(folder, upper, None)
                return
            try:
                with tree.directory_at(self._lower, folder.path) as lower:
                    self._read_entries(folder, upper, lower)
            except OSError as problem:
                self._refuse(folder.path, f"the real directory cannot be read: {problem.strerror}")

    def _read_entries(self, folder: _Folder, upper: int, lower: int | None) -> None:
        for name in sorted(os.listdir(upper)):
            path = f"{folder.path}/{name}" if folder.path else name
            new = os.stat(name, dir_fd=upper, follow_symlinks=False)
            old = None if lower is None else tree.look(lower, name)
            scratch = folder.scratch or self._is_scratch(path)
            entry = _Entry(name, path, upper, lower, new, old, folder._replace(scratch=scratch))
            try:
                self._examine(entry)
            except _Refusal as refusal:
                self._refuse(path, str(refusal), scratch=scratch)

    def _refuse(self, path: str, reason: str, *, scratch: bool = False) -> None:
        self._refused.append(Refused(path=path, reason=reason, scratch=scratch))
        if len(self._refused) > MAX_CHANGES:
            raise tree.TooMany(f"more than {MAX_CHANGES} changes")

    def _examine(self, entry: _Entry) -> None:
        entry.conflict = entry.old is not None and entry.old.st_ctime_ns >= self._layer.began_ns
        if entry.is_whiteout:
            self._examine_whiteout(entry)
        elif reason := refusals.of_type(entry.new.st_mode, 0 if entry.old is None else entry.old.st_mode):
            raise _Refusal(reason)
        elif entry.is_directory:
            self._examine_directory(entry)
        elif stat.S_ISLNK(entry.new.st_mode):
            self._examine_link(entry)
        else:
            self._examine_file(entry)
        if entry.kind is not None:
            self._add(entry)
        if entry.is_directory:
            self._enter(entry)

    def _enter(self, entry: _Entry) -> None:
        is_whole = entry.kind in (Alteration.CREATE, Alteration.MODIFY)
        inside = entry.folder.inside or (entry.path if is_whole else "")
        self._ahead.append(_Folder(entry.path, inside, entry.folder.scratch))

    def _add(self, entry: _Entry) -> None:
        if entry.kind is not Alteration.TOUCH:
            self._require_allowed(entry)
        self._changes.append(
            TreeChange(
                kind=entry.kind or Alteration.TOUCH,
                path=entry.path,
                before=entry.before,
                after=entry.after,
                new=None if entry.is_whiteout else entry.new,
                old=entry.old,
                inside=entry.folder.inside,
                links_to=entry.links_to,
                note="; ".join(entry.notes),
                count=entry.count,
                lost=tuple(entry.lost) or _replaced_file(entry),
                conflict=entry.conflict,
                scratch=entry.folder.scratch,
            )
        )
        if len(self._changes) > MAX_CHANGES:
            raise tree.TooMany(f"more than {MAX_CHANGES} changes")

    def _examine_whiteout(self, entry: _Entry) -> None:
        """`mknod` through the mount makes none; where there is nothing below, the command removed its own work."""
        if entry.old is None or entry.lower is None:
            return
        entry.kind = Alteration.DELETE
        if stat.S_ISDIR(entry.old.st_mode):
            self._examine_replaced_directory(entry, entry.lower)
        else:
            entry.before = tree.fingerprint(entry.lower, entry.name)
            entry.lost.append(entry.path)

    def _examine_replaced_directory(self, entry: _Entry, lower: int) -> None:
        """Fingerprint everything in a real directory that makes way as a whole."""
        digested = tree.TreeDigest()
        entry.conflict = False
        for each in tree.walk(lower, entry.name):
            path = f"{entry.path}{each.path.removeprefix(entry.name)}"
            if reason := self._refusals.of_removal(self._absolute(path)):
                raise _Refusal(f"{reason}; it would go with the directory ({path!r})")
            entry.count += 1
            if not stat.S_ISDIR(each.stat.st_mode):
                entry.lost.append(path)
            entry.conflict |= each.stat.st_ctime_ns >= self._layer.began_ns
            digested.add(each)
        entry.before = digested.value

    def _examine_directory(self, entry: _Entry) -> None:
        tree.make_accessible(entry.upper, entry.name, entry.new.st_mode)
        with tree.directory_at(entry.upper, entry.name) as descriptor:
            attributes = os.listxattr(descriptor)
            if reason := refusals.of_attributes(attributes, self._layer.notes):
                raise _Refusal(reason)
            opaque = f"{self._layer.notes}opaque"
            mark = os.getxattr(descriptor, opaque) if opaque in attributes else b""
        if mark not in (b"", b"y"):
            raise _Refusal("carries a note of overlayfs that does not belong there (opaque)")
        self._require_owner(entry)
        entry.after = "directory"
        self._classify_directory(entry, is_opaque=bool(mark))
        if entry.kind in (Alteration.CREATE, Alteration.MODIFY) and refusals.access_lists(attributes):
            entry.notes.append("its access control list is not kept")

    def _classify_directory(self, entry: _Entry, *, is_opaque: bool) -> None:
        if entry.old is None or entry.lower is None:
            entry.kind = Alteration.CREATE
        elif not entry.is_merged:
            entry.kind = Alteration.MODIFY
            entry.before = tree.fingerprint(entry.lower, entry.name)
        elif is_opaque:  # removed and made again
            entry.kind = Alteration.MODIFY
            self._examine_replaced_directory(entry, entry.lower)
        else:
            entry.conflict = False  # its entries are looked at one by one
            entry.before = "directory"
            if entry.old.st_mode != entry.new.st_mode:
                entry.kind = Alteration.MODE

    def _examine_link(self, entry: _Entry) -> None:
        self._require_owner(entry)
        entry.after = link_fingerprint(entry.upper, entry.name)
        entry.before = self._fingerprint_old(entry)
        if entry.before != entry.after:
            entry.kind = Alteration.CREATE if entry.old is None else Alteration.MODIFY

    def _fingerprint_old(self, entry: _Entry) -> str | None:
        if entry.old is None or entry.lower is None:
            return None
        if stat.S_ISDIR(entry.old.st_mode):
            self._examine_replaced_directory(entry, entry.lower)
            return entry.before
        try:
            return tree.fingerprint(entry.lower, entry.name)
        except PermissionError:
            return size_fingerprint(entry.old)

    def _examine_file(self, entry: _Entry) -> None:
        tree.make_accessible(entry.upper, entry.name, entry.new.st_mode)
        with tree.file_at(entry.upper, entry.name) as descriptor:
            attributes = os.listxattr(descriptor)
            if reason := refusals.of_attributes(attributes, self._layer.notes):
                raise _Refusal(reason)
            self._require_owner(entry)
            first = self._first_names.setdefault(entry.new.st_ino, entry.path) if entry.new.st_nlink > 1 else entry.path
            is_same = self._is_same_file(entry, descriptor, attributes)
            if is_same and first == entry.path:
                entry.before = entry.after = "same"
            else:
                entry.after = file_fingerprint(descriptor, entry.new)
                entry.before = self._fingerprint_old(entry)
        self._classify_file(entry, first, is_same=is_same)
        if entry.kind in (Alteration.CREATE, Alteration.MODIFY) and refusals.access_lists(attributes):
            entry.notes.append("its access control list is not kept")

    def _is_same_file(self, entry: _Entry, descriptor: int, attributes: list[str]) -> bool:
        old = entry.old
        if old is None or entry.lower is None or not stat.S_ISREG(old.st_mode) or old.st_size != entry.new.st_size:
            return False
        if old.st_size > LARGEST_COMPARED:
            return False
        try:
            with tree.file_at(entry.lower, entry.name) as former:
                return _attributes(descriptor, attributes) == _attributes(former, os.listxattr(former)) and (
                    tree.has_same_content(descriptor, former)
                )
        except PermissionError:
            return False

    def _classify_file(self, entry: _Entry, first: str, *, is_same: bool) -> None:
        old, new = entry.old, entry.new
        if first != entry.path:
            entry.kind = Alteration.LINK
            entry.links_to = first
        elif old is None or not is_same:
            entry.kind = Alteration.CREATE if old is None else Alteration.MODIFY
            if old is not None and old.st_nlink > 1 and stat.S_ISREG(old.st_mode):
                entry.notes.append("its other names (hard links) keep the old content")
        elif old.st_mode == new.st_mode and (old.st_mtime_ns == new.st_mtime_ns or new.st_nlink > 1):
            self._untouched[entry.path] = tree.identity_of(old, exact=True)
        elif new.st_nlink > 1:  # its names share one mode, so all of them are replaced
            entry.kind = Alteration.MODIFY
            entry.before = entry.after = tree.fingerprint(entry.upper, entry.name)
        else:
            entry.kind = Alteration.TOUCH if old.st_mode == new.st_mode else Alteration.MODE

    def _require_owner(self, entry: _Entry) -> None:
        """What the program made becomes the root's owner's; anything else must have had its owner before."""
        former = None if entry.old is None else (entry.old.st_uid, entry.old.st_gid)
        if self.owner_of(entry.new) not in (self._owner, former) and not self._is_group_of_parent(entry):
            raise _Refusal(f"belongs to another user ({entry.new.st_uid}:{entry.new.st_gid})")

    def owner_of(self, found: os.stat_result) -> tuple[int, int]:
        return owner_of(found, self._layer, self._owner)

    def _is_group_of_parent(self, entry: _Entry) -> bool:
        """A setgid directory hands its group to what is made in it."""
        parent = os.fstat(entry.upper)
        same_group = bool(parent.st_mode & stat.S_ISGID) and parent.st_gid == entry.new.st_gid
        return same_group and self.owner_of(entry.new)[0] == self._owner[0]

    def _require_allowed(self, entry: _Entry) -> None:
        mode = 0 if entry.is_whiteout else entry.new.st_mode
        path = self._absolute(entry.path)
        new = _content(entry.upper, entry.name)
        former = _content(entry.lower, entry.name)
        if reason := self._refusals.of_path(path, mode, new, former):
            raise _Refusal(reason)
        if refusals.may_concern_repository(entry.name) and os.path.basename(entry.folder.path).casefold() != ".git":
            before, after = _names(entry)
            if reason := refusals.of_repository(entry.name, before, after):
                raise _Refusal(reason)

    def _absolute(self, path: str) -> str:
        return f"{self._layer.root.rstrip('/')}/{path}"


def _replaced_file(entry: _Entry) -> tuple[str, ...]:
    """The file that makes way for something else than a file."""
    was_file = entry.old is not None and stat.S_ISREG(entry.old.st_mode)
    return (entry.path,) if was_file and not stat.S_ISREG(entry.new.st_mode) else ()


def owner_of(found: os.stat_result, layer: Layer, owner: tuple[int, int]) -> tuple[int, int]:
    """The owner in the real tree of an entry of a layer."""
    return (
        owner[0] if found.st_uid == layer.uid else found.st_uid,
        owner[1] if found.st_gid == layer.gid else found.st_gid,
    )


def _attributes(descriptor: int, names: list[str]) -> dict[str, bytes]:
    return {name: os.getxattr(descriptor, name) for name in refusals.carried_attributes(names)}


def _content(directory: int | None, name: str) -> refusals.ReadContent:
    def read() -> bytes:
        if directory is None:
            return b""
        try:
            with tree.file_at(directory, name) as descriptor:
                return refusals.read_at_most(descriptor)
        except OSError:
            return b""

    return read


def _names(entry: _Entry) -> tuple[set[str], set[str]]:
    """The casefolded names of the directory around an entry, before and after the trial."""
    before = set() if entry.lower is None else set(os.listdir(entry.lower))
    after = set(before)
    for name in os.listdir(entry.upper):
        found = os.stat(name, dir_fd=entry.upper, follow_symlinks=False)
        if stat.S_ISCHR(found.st_mode):
            after.discard(name)
        else:
            after.add(name)
    return {name.casefold() for name in before}, {name.casefold() for name in after}
