"""File writer: check, keep for undo, record durably, change.

Everything here blocks and runs to its end in a thread: half a change is worse than a late result. Changes of one path
are serialised.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from itertools import chain

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Bounds, Change, Changed, Keep
from toolreeve.core.fingerprints import content_fingerprint, file_fingerprint, read_chunks
from toolreeve.core.guarded_paths import REPOSITORY_MAKERS, is_repository
from toolreeve.core.openat2 import rename_new
from toolreeve.guard.files.change import ChangeTarget, Outdated, missing_directories, write_errors
from toolreeve.guard.files.draft import append_in_place, draft, is_same, is_writable, sync_directory, temp_name
from toolreeve.guard.files.errors import failed, forbidden, missing_file
from toolreeve.guard.files.paths import READING, Paths, Spot
from toolreeve.guard.files.reader import require_regular
from toolreeve.guard.files.roots import SETTING
from toolreeve.guard.files.walker import Walker

Note = Callable[[Change], None]
MAX_COPIED = 64 * 1024 * 1024
MAX_MOVED = 10_000


class FileWriter:
    def __init__(self, paths: Paths, *, allowed: bool, keep: Keep | None, use_openat2: bool, unnamed: bool) -> None:
        self.target = ChangeTarget(paths, allowed=allowed, keep=keep)
        self._paths = paths
        self._keep = keep
        self._use_openat2 = use_openat2
        self._unnamed = unnamed

    def write(
        self,
        note: Note,
        path: str,
        data: bytes,
        *,
        append: bool,
        create_dirs: bool,
        expect: str | None,
        mode: int | None,
    ) -> Changed:
        def attempt() -> Changed:
            with self.target.hold(path, follow=True) as spot:
                old = spot.stat()
                self._require_inert(spot, path, data, old if append else None)
                if old is None:
                    if expect is not None:
                        raise missing_file(path)
                    self.target.require_directory(spot, path, create=create_dirs)
                    return self._create(note, spot, data, mode)
                require_regular(old, path, otherwise=ErrorCode.WRITE_ERROR)
                return self._replace(note, spot, path, data, append=append, expect=expect, mode=mode)

        return self.target.retry(path, attempt)

    def _require_inert(self, spot: Spot, path: str, data: bytes, appended_to: os.stat_result | None) -> None:
        if self._paths.roots.content_check(spot.path) is None:
            return
        if appended_to is not None:
            with self.target.open_regular(spot) as (descriptor, _):
                data = b"".join(read_chunks(descriptor)) + data
        self.target.require_inert(spot, path, data)

    def _create(self, note: Note, spot: Spot, data: bytes, mode: int | None) -> Changed:
        change = Change(
            kind="write",
            path=spot.path,
            after=content_fingerprint([data]),
            made=missing_directories(spot),
            temp=temp_name(),
        )
        note(change)
        with (
            self.target.make_missing(spot, change.made),
            draft(spot.descriptor, change.temp, unnamed=self._unnamed) as new,
        ):
            if mode is not None:
                os.fchmod(new.descriptor, mode & 0o777)
            new.write(data)
            new.publish(spot.name, replace=False)
            sync_directory(spot.descriptor)
        return Changed(path=spot.path, size=len(data), undoable=self._keep is not None)

    def _replace(
        self, note: Note, spot: Spot, path: str, data: bytes, *, append: bool, expect: str | None, mode: int | None
    ) -> Changed:
        if not is_writable(spot):
            raise ToolError(ErrorCode.PERMISSION, f"The operating system refuses to write {path}")
        with self.target.open_regular(spot) as (descriptor, old):
            before = file_fingerprint(descriptor, old)
            if expect is not None and before != expect:
                raise ToolError(ErrorCode.WRITE_ERROR, f"{path}: changed since it was read; read it again")
            kept = self.target.save(descriptor, old)
            if append and old.st_size > MAX_COPIED:
                return self._append_in_place(note, spot, path, data, before)
            after = content_fingerprint(chain(read_chunks(descriptor) if append else (), [data]))
            change = Change(
                kind="write",
                path=spot.path,
                before=before,
                after=after,
                mode=old.st_mode & 0o777,
                kept=kept,
                temp=temp_name(),
            )
            note(change)
            with draft(spot.descriptor, change.temp, unnamed=self._unnamed) as new:
                new.inherit(old)
                if mode is not None:
                    os.fchmod(new.descriptor, mode & 0o777)
                for piece in read_chunks(descriptor) if append else ():
                    new.write(piece)
                new.write(data)
                if not is_same(old, spot.stat()):
                    raise Outdated
                new.publish(spot.name, replace=True)
                size = os.fstat(new.descriptor).st_size
            sync_directory(spot.descriptor)
        return Changed(path=spot.path, size=size, existed=True, undoable=kept)

    def _append_in_place(self, note: Note, spot: Spot, path: str, data: bytes, before: str) -> Changed:
        descriptor = spot.open(os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        try:
            if os.fstat(descriptor).st_nlink > 1:
                raise failed(ErrorCode.WRITE_ERROR, path, "has other hard links and is too large to be copied")
            note(Change(kind="write", path=spot.path, before=before, kept=False))
            append_in_place(descriptor, data)
            return Changed(path=spot.path, size=os.fstat(descriptor).st_size, existed=True, undoable=False)
        finally:
            os.close(descriptor)

    def delete(self, note: Note, path: str) -> Changed:
        def attempt() -> Changed:
            with self.target.locate(path, follow=False) as spot, self.target.lock(spot.path):
                old = spot.stat()
                if old is None:
                    return Changed(path=spot.path)
                before, kept = self.target.keep_former(spot, path, old)
                note(Change(kind="delete", path=spot.path, before=before, mode=old.st_mode & 0o777, kept=kept))
                if not is_same(old, spot.stat()):
                    raise Outdated
                os.unlink(spot.name, dir_fd=spot.descriptor)
                sync_directory(spot.descriptor)
                return Changed(path=spot.path, size=old.st_size, existed=True, undoable=kept)

        return self.target.retry(path, attempt)

    def move(self, note: Note, path: str, to: str, *, overwrite: bool, create_dirs: bool) -> Changed:
        def attempt() -> Changed:
            with (
                self.target.making,
                self.target.locate(path, follow=False) as here,
                self.target.locate(to, follow=False) as there,
                self.target.lock(here.path, there.path),
            ):
                return self._move(note, here, there, path, to, overwrite=overwrite, create_dirs=create_dirs)

        return self.target.retry(to, attempt)

    def _move(
        self, note: Note, here: Spot, there: Spot, path: str, to: str, *, overwrite: bool, create_dirs: bool
    ) -> Changed:
        moved, replaced = here.stat(), there.stat()
        if moved is None:
            raise missing_file(path)
        self.target.require_directory(there, to, create=create_dirs)
        if stat.S_ISDIR(moved.st_mode):
            self._require_plain(here, there, path)
        if self._paths.roots.content_check(there.path) is not None:
            self._require_movable(here, there, to)
        if replaced is not None and not overwrite:
            raise failed(ErrorCode.WRITE_ERROR, to, "already exists; pass overwrite=true to replace it")
        before = None
        kept = self._keep is not None
        mode = 0
        if replaced is not None:
            before, kept = self.target.keep_former(there, to, replaced)
            mode = replaced.st_mode & 0o777
        after = self.target.fingerprint_spot(here)
        change = Change(
            kind="move",
            path=here.path,
            to=there.path,
            before=before,
            after=after,
            mode=mode,
            kept=kept,
            made=missing_directories(there),
        )
        note(change)
        with self.target.make_missing(there, change.made):
            if replaced is None:
                rename_new(here.descriptor, here.name, there.descriptor, there.name)
            else:
                os.rename(here.name, there.name, src_dir_fd=here.descriptor, dst_dir_fd=there.descriptor)
            sync_directory(there.descriptor)
            sync_directory(here.descriptor)
        return Changed(path=there.path, size=moved.st_size, existed=replaced is not None, undoable=kept)

    def _require_movable(self, here: Spot, there: Spot, to: str) -> None:
        with self.target.open_regular(here) as (descriptor, _):  # a link is refused
            self.target.require_inert(there, to, b"".join(read_chunks(descriptor)))

    def link(self, note: Note, path: str, target: str) -> Changed:
        with self.target.hold(path, follow=False) as spot, write_errors(path):
            if self._paths.roots.content_check(spot.path) is not None:
                raise forbidden(path, "git obeys it, so it must not be a link")
            note(Change(kind="write", path=spot.path, after=f"link:{target}", made=missing_directories(spot)))
            with self.target.make_missing(spot, missing_directories(spot)):
                os.symlink(target, spot.name, dir_fd=spot.descriptor)
                sync_directory(spot.descriptor)
            return Changed(path=spot.path)

    def sweep(self, directory: str, temp: str) -> None:
        """Remove a temporary name that a dead process left behind."""
        with suppress(ToolError, FileNotFoundError), self.target.locate(f"{directory}/{temp}", follow=False) as spot:
            if not spot.missing:
                os.unlink(spot.name, dir_fd=spot.descriptor)

    def _require_plain(self, here: Spot, there: Spot, path: str) -> None:
        """A directory may move only if nothing in it becomes more or less guarded by that, and with no repository."""
        if problem := self._find_immovable(here, there, path):
            raise problem

    def _find_immovable(self, here: Spot, there: Spot, path: str) -> ToolError | None:
        """Returned, not raised: a traceback would keep the walk open."""
        descriptor = here.open(READING | os.O_DIRECTORY)
        walk = Walker(
            descriptor,
            here.path,
            bounds=Bounds(entries=MAX_MOVED),
            hidden=True,
            skip=frozenset(),
            refused=lambda _: False,
            use_openat2=self._use_openat2,
        )
        judge = self._paths.roots.refusal
        makers: defaultdict[str, set[str]] = defaultdict(set)
        for entry in walk:
            old, new = f"{here.path}/{entry.path}", f"{there.path}/{entry.path}"
            if judge(old, change=True) != judge(new, change=True):
                return forbidden(path, f"contains {entry.path!r}, which may not be moved")
            if (name := entry.name.casefold()) in REPOSITORY_MAKERS:
                below = entry.path.rpartition("/")[0]
                makers[below].add(name)
                if is_repository(makers[below]) and not self._is_allowed_in_both(here, there, below):
                    found = f"contains a repository at {below!r}" if below else "is a repository"
                    return forbidden(path, f"{found}; a move is refused unless {SETTING} names it before and after")
        if walk.cut:
            return failed(
                ErrorCode.WRITE_ERROR, path, f"contains more than {MAX_MOVED} entries; move its parts one by one"
            )
        return None

    def _is_allowed_in_both(self, here: Spot, there: Spot, below: str) -> bool:
        places = [(f"{spot.path}/{below}".rstrip("/"), spot.root) for spot in (here, there)]
        return all(self._paths.roots.is_allowed(place, root) for place, root in places)
