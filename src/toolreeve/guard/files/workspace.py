"""Workspace files: checks and opens every path in one step.

A path is resolved against the workspace root, links followed, and must end inside an allowed root and outside the
sensitive places. `..` that stays inside is fine. A leading `~/` means the home directory if one is configured, and is
refused otherwise. Unicode is never normalised: a look-alike of a dot or a slash is an ordinary character.
"""

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Bounds, Change, Changed, Chunk, FileStat, Keep, Listed, Listing, PathFinding
from toolreeve.core.fingerprints import content_fingerprint
from toolreeve.core.openat2 import has_openat2
from toolreeve.guard.files.errors import failed, from_system
from toolreeve.guard.files.paths import Paths
from toolreeve.guard.files.reader import OpenFile, first_entries, kind_of, require_regular
from toolreeve.guard.files.roots import Root, Roots
from toolreeve.guard.files.walker import Walker
from toolreeve.guard.files.writer import FileWriter, Note

NOTE_TIMEOUT = 60.0
_UNBOUNDED = Bounds()
_NO_NAMES: frozenset[str] = frozenset()


class WorkspaceFiles:
    """`extra_roots` may be read, `writable_roots` also changed. `protected` is refused altogether, `unwritable` may be
    read; `sensitive_allow` are the sensitive files that the configuration allows. `homes` are home directories whose
    start-up files are guarded, `environment` is what the runtime runs from. `search_bases` are where directory searches
    may start, the workspace by default. `backend` selects how paths are opened, by default the fastest the kernel has;
    with `unnamed_files`, new content is written without a name where the file system supports it."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        extra_roots: Sequence[str] = (),
        writable_roots: Sequence[str] = (),
        allow_write: bool = True,
        search_bases: Sequence[str] = (),
        protected: Sequence[str] = (),
        unwritable: Sequence[str] = (),
        sensitive_allow: Sequence[str] = (),
        home: str | None = None,
        homes: Sequence[str] = (),
        environment: Sequence[str] = (),
        keep: Keep | None = None,
        backend: Literal["auto", "openat2", "walk"] = "auto",
        unnamed_files: bool = True,
    ) -> None:
        use_openat2 = backend == "openat2" or (backend == "auto" and has_openat2())
        rules: dict[str, Any] = {
            "protected": protected,
            "unwritable": unwritable,
            "sensitive_allow": sensitive_allow,
            "homes": homes,
            "environment": environment,
        }
        main = Root(os.fspath(root), writable=True)
        others = [Root(path, writable=False) for path in extra_roots]
        others += [Root(path, writable=True) for path in writable_roots]
        self._paths = Paths(Roots([main, *others], **rules, home=home), use_openat2=use_openat2)
        bases = [Root(path, writable=False) for path in search_bases or (main.path,)]
        noun = (
            "the search bases (workspace.search_allowed_bases), the first of which is"
            if search_bases
            else "the workspace"
        )
        self._bases = Paths(Roots(bases, **rules, home=home, noun=noun), use_openat2=use_openat2)
        self._writer = FileWriter(
            self._paths, allowed=allow_write, keep=keep, use_openat2=use_openat2, unnamed=unnamed_files
        )
        self._keep = keep
        self._threads = ThreadPoolExecutor(max_workers=16, thread_name_prefix="toolreeve-files")
        self.root = main.path
        self.allow_write = allow_write
        self.backend = "openat2" if use_openat2 else "walk"

    def close(self) -> None:
        self._threads.shutdown()
        self._paths.roots.close()
        self._bases.roots.close()

    def resolve(self, path: str) -> str:
        return self._paths.resolve(path)

    def target(self, path: str) -> str:
        try:
            return self.resolve(path)
        except ToolError:
            return self._paths.roots.normalise(path)

    def reaches(self, resolved: str) -> bool:
        """Whether a resolved path lies in the workspace or in an additional root."""
        return self._paths.roots.find(resolved) is not None

    def relative(self, path: str) -> str:
        if path == self.root:
            return "."
        return path.removeprefix(self._paths.roots.main.prefix)

    def explain(self, path: str, *, change: bool = False, follow: bool = True) -> PathFinding:
        try:
            if change:
                self._writer.target.require_allowed()
            with self._paths.spot(path, follow=follow) as spot:
                self._paths.require(spot.path, path, change=change)
                found = spot.stat()
                is_link = found is not None and stat.S_ISLNK(found.st_mode)
                if found is not None and not stat.S_ISDIR(found.st_mode) and (follow or not is_link):
                    require_regular(found, path)
                reason = "is inside the workspace"
                if found is None:
                    reason += "; nothing is there yet"
                return PathFinding(value=path, decision="allow", reason=reason, resolved=spot.path)
        except ToolError as problem:
            return PathFinding(value=path, decision="deny", reason=problem.message, resolved=None, code=problem.code)

    def read(self, path: str, limit: int) -> Chunk:
        descriptor, resolved = self._paths.open(path)
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                require_regular(found, path)
            return Chunk(resolved, found.st_size, os.read(descriptor, min(limit, found.st_size)))
        except OSError as problem:
            raise from_system(problem, path, ErrorCode.READ_ERROR) from None
        finally:
            os.close(descriptor)

    def open(self, path: str) -> OpenFile:
        descriptor, resolved = self._paths.open(path)
        return OpenFile(descriptor, resolved, path)

    def stat(self, path: str) -> FileStat | None:
        try:
            with self._paths.spot(path) as spot:
                self._paths.require(spot.path, path)
                found = spot.stat()
                resolved = spot.path
        except ToolError as problem:
            if problem.code is ErrorCode.DIR_NOT_FOUND:
                return None
            raise
        if found is None:
            return None
        kind = kind_of(found.st_mode)
        return FileStat(path=resolved, kind=kind, size=found.st_size, mode=found.st_mode, modified=found.st_mtime)

    def list(self, path: str, *, limit: int, after: str = "", hidden: bool = False) -> Listing:
        descriptor, resolved = self._open_directory(self._paths, path)
        try:
            found, total = first_entries(
                descriptor, limit=limit, after=after, wanted=lambda name: hidden or name[0] != "."
            )
            entries = [self._describe(entry, resolved) for entry in found[:limit]]
        except OSError as problem:
            raise from_system(problem, path, ErrorCode.LIST_ERROR) from None
        finally:
            os.close(descriptor)
        return Listing(path=resolved, entries=entries, total=total, more=len(found) > limit or total is None)

    def _open_directory(self, paths: Paths, path: str, otherwise: ErrorCode = ErrorCode.LIST_ERROR) -> tuple[int, str]:
        try:
            return paths.open(path, directory=True)
        except ToolError as problem:
            if problem.code is ErrorCode.READ_ERROR:
                raise failed(otherwise, path, problem.message) from None
            raise
        except OSError as problem:
            raise from_system(problem, path, otherwise) from None

    def _describe(self, entry: "os.DirEntry[str]", directory: str) -> Listed:
        if entry.is_symlink():
            leads = self._follow(os.path.join(directory, entry.name))
            is_dir = leads is not None and stat.S_ISDIR(leads.mode)
            return Listed(name=entry.name, is_dir=is_dir, size=leads.size if leads else 0, is_link=True)
        try:
            size = entry.stat(follow_symlinks=False).st_size
        except OSError:
            size = 0  # gone since it was listed
        return Listed(name=entry.name, is_dir=entry.is_dir(follow_symlinks=False), size=size)

    def _follow(self, path: str) -> FileStat | None:
        try:
            return self.stat(path)
        except ToolError:
            return None

    def walk(
        self,
        path: str,
        *,
        bounds: Bounds = _UNBOUNDED,
        hidden: bool = False,
        skip: frozenset[str] = _NO_NAMES,
        search_base: bool = False,
    ) -> Walker:
        paths = self._bases if search_base else self._paths
        start = os.path.join(self.root, path) if search_base else path
        descriptor, resolved = self._open_directory(paths, start, ErrorCode.SEARCH_ERROR)
        return Walker(
            descriptor,
            resolved,
            bounds=bounds,
            hidden=hidden,
            skip=skip,
            refused=lambda each: paths.roots.refusal(each) is not None,
            use_openat2=self.backend == "openat2",
        )

    def fingerprint_of(self, data: bytes) -> str:
        return content_fingerprint([data])

    def changes(self, *, call_id: str | None = None, session: str | None = None) -> Sequence[Change]:
        return () if self._keep is None else self._keep.standing(call_id=call_id, session=session)

    def fingerprint(self, path: str) -> str | None:
        try:
            with self._paths.spot(path, follow=False) as spot:
                self._paths.require(spot.path, path)
                return self._writer.target.fingerprint_spot(spot)
        except OSError as problem:
            raise from_system(problem, path, ErrorCode.READ_ERROR) from None

    async def write(
        self,
        call: ToolCall,
        path: str,
        data: bytes,
        *,
        append: bool = False,
        create_dirs: bool = True,
        expect: str | None = None,
        mode: int | None = None,
    ) -> Changed:
        work = partial(
            self._writer.write,
            path=path,
            data=data,
            append=append,
            create_dirs=create_dirs,
            expect=expect,
            mode=mode,
        )
        return await self._change(call, work)

    async def delete(self, call: ToolCall, path: str) -> Changed:
        return await self._change(call, partial(self._writer.delete, path=path))

    async def move(
        self, call: ToolCall, path: str, to: str, *, overwrite: bool = False, create_dirs: bool = True
    ) -> Changed:
        work = partial(self._writer.move, path=path, to=to, overwrite=overwrite, create_dirs=create_dirs)
        return await self._change(call, work)

    async def link(self, call: ToolCall, path: str, target: str) -> Changed:
        return await self._change(call, partial(self._writer.link, path=path, target=target))

    async def remove_directory(self, path: str) -> bool:
        return await asyncio.to_thread(self._writer.target.remove_directory, path)

    def sweep(self, directory: str, temp: str) -> None:
        """Remove a temporary name that a killed process left beside a file."""
        self._writer.sweep(directory, temp)

    async def _change(self, call: ToolCall, work: Callable[[Note], Changed]) -> Changed:
        loop = asyncio.get_running_loop()

        def note(change: Change) -> None:
            if self._keep is None:
                return
            try:
                asyncio.run_coroutine_threadsafe(self._keep.note(call, change), loop).result(NOTE_TIMEOUT)
            except TimeoutError:
                raise ToolError(
                    ErrorCode.AUDIT_ERROR, "the change could not be recorded for undo in time; nothing was changed"
                ) from None

        working = loop.run_in_executor(self._threads, work, note)
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            # The change is made or not made, never abandoned: the cancelled caller waits for it.
            await asyncio.wait([working])
            raise
