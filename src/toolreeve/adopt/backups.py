"""Applies changes with backups and a manifest, for undo.

The manifest is written atomically before the changes, and in the end lists exactly what was changed. When undoing, a
file that was edited since keeps those edits: the servers are merged back into it. If that is not possible, it stays as
it is, and the user's own file keeps the servers that it needs. No client is left without its servers.
"""

import dataclasses
import fcntl
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from toolreeve.adopt.plan import SECTION, FileChange
from toolreeve.adopt.replace_file import digest, read, replace, write_new
from toolreeve.adopt.reversal import BlocksAdded, Reversal, ServersTaken
from toolreeve.adopt.server_entries import restore_servers
from toolreeve.adopt.toml_edit import without_blocks
from toolreeve.config.jsonc import json_document
from toolreeve.core.errors import ConfigError

FOLDER = "adopted"
MANIFEST = "manifest.json"
LOCK = "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOutcome:
    """The result for one file; `problem` is empty on success. `merged`: later edits of the file are kept. `kept` are
    the servers that were changed since and stay as they are."""

    path: Path
    problem: str = ""
    merged: bool = False
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One changed file: its digests before and after, and the name of its backup if it existed."""

    path: Path
    backup: str | None
    before: str | None
    after: str
    reversal: Reversal | None = None


_ENTRIES = TypeAdapter(tuple[ManifestEntry, ...])


def _timestamp() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


class Backups:
    """The adoptions of one user, in the state directory; other changes are kept in another folder."""

    def __init__(self, state: Path, folder: str = FOLDER) -> None:
        self._state = state
        self._folder = state / folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Excludes other adoptions and undos, so that a plan still holds when it is written. Raises ConfigError if the
        state directory is not writable."""
        try:
            for folder in (self._state, self._folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self._folder / LOCK).open("w")
        except OSError as problem:
            raise ConfigError(f"cannot be written: {problem.strerror}", source=self._folder) from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def apply(
        self, changes: Sequence[FileChange], *, private: Sequence[Path] = ()
    ) -> tuple[Path | None, list[ChangeOutcome]]:
        """Write the changes; returns the folder of the backups, None if nothing was changed. Files in `private` become
        private to their owner. Raises ConfigError, with nothing changed, if no backup can be made."""
        folder, entries = self._back_up(changes)
        outcomes = []
        for change in changes:
            try:
                replace(change.path, change.after.encode(), expected=change.before, private=change.path in private)
                outcomes.append(ChangeOutcome(path=change.path))
            except (OSError, ConfigError) as problem:
                outcomes.append(ChangeOutcome(path=change.path, problem=_describe(problem)))
                if change.path in private:
                    break
        done = {outcome.path for outcome in outcomes if not outcome.problem}
        return _trim_manifest(folder, entries, [entry for entry in entries if entry.path in done]), outcomes

    def _back_up(self, changes: Sequence[FileChange]) -> tuple[Path, Sequence[ManifestEntry]]:
        folder = self._folder / _timestamp()
        try:
            folder.mkdir(mode=0o700, parents=True)
            entries = [_back_up_file(folder, number, change) for number, change in enumerate(changes)]
            _write_manifest(folder / MANIFEST, entries, expected=None)
        except OSError as problem:
            shutil.rmtree(folder, ignore_errors=True)
            why = f"no backups could be made there, so nothing was changed: {problem.strerror}"
            raise ConfigError(why, source=folder) from None
        return folder, entries

    def as_before(self, change: FileChange) -> FileChange:
        """The change, to the very bytes of the file before an earlier change if it means the same: comments and
        indentation included."""
        for folder in sorted(self._folder.glob("*/"), reverse=True):
            manifest = folder / MANIFEST
            for entry in _read_manifest(manifest) if manifest.is_file() else ():
                if entry.path == change.path and entry.after == digest(change.before) and entry.backup:
                    earlier = (_read_backup(entry, folder) or b"").decode()
                    if _means_same(earlier, change.after):
                        return dataclasses.replace(change, after=earlier)
        return change

    def undo(self, *, force: bool) -> list[ChangeOutcome] | None:
        """Undo the last adoption; None if there is none. A file that cannot be restored can be undone again later."""
        for folder in sorted(self._folder.glob("*/"), reverse=True):
            manifest = folder / MANIFEST
            if manifest.is_file():
                return _undo(manifest, force=force)
        return None


def _means_same(one: str, other: str) -> bool:
    return bool(json_document(one, "").value == json_document(other, "").value)


def _back_up_file(folder: Path, number: int, change: FileChange) -> ManifestEntry:
    backup = None
    if change.before is not None:
        backup = f"{number}-{change.path.name.lstrip('.')}"
        write_new(folder / backup, change.before.encode())
    return ManifestEntry(
        path=change.path,
        backup=backup,
        before=digest(change.before),
        after=str(digest(change.after)),
        reversal=change.reversal,
    )


def _trim_manifest(folder: Path, entries: Sequence[ManifestEntry], done: Sequence[ManifestEntry]) -> Path | None:
    """Unchanged files need not be undone."""
    if not done:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    if len(done) < len(entries):
        # A manifest that lists too much is better than none: every change must be possible to undo.
        with suppress(OSError):
            _write_manifest(folder / MANIFEST, done, expected=(folder / MANIFEST).read_bytes())
    return folder


def _write_manifest(path: Path, entries: Sequence[ManifestEntry], *, expected: bytes | None) -> None:
    replace(path, _ENTRIES.dump_json(tuple(entries), indent=2), expected=expected, private=True)


def _undo(manifest: Path, *, force: bool) -> list[ChangeOutcome]:
    """Clients first: as long as one uses our entry, the servers behind it stay."""
    entries = _read_manifest(manifest)
    outcomes: list[ChangeOutcome] = []
    for entry in reversed(entries):
        failed = [outcome.path for outcome in outcomes if outcome.problem]
        if failed and isinstance(entry.reversal, BlocksAdded):
            outcomes.append(ChangeOutcome(path=entry.path, problem=f"not changed: {failed[0]} still needs it"))
        else:
            outcomes.append(_restore(entry, manifest.parent, force=force))
    _close_manifest(manifest, entries, outcomes)
    return outcomes


def _close_manifest(manifest: Path, entries: Sequence[ManifestEntry], outcomes: Sequence[ChangeOutcome]) -> None:
    failed = {outcome.path for outcome in outcomes if outcome.problem}
    remaining = [entry for entry in entries if entry.path in failed]
    if not remaining:
        manifest.rename(manifest.with_name("undone.json"))
    elif len(remaining) < len(entries):
        _write_manifest(manifest, remaining, expected=manifest.read_bytes())


def _read_manifest(path: Path) -> tuple[ManifestEntry, ...]:
    try:
        return _ENTRIES.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        fix = f"restore by hand what you need from {path.parent}"
        raise ConfigError("cannot be read", source=path, fix=fix) from None


def _restore(entry: ManifestEntry, folder: Path, *, force: bool) -> ChangeOutcome:
    try:
        now = read(entry.path)
        if digest(now) == entry.before:
            return ChangeOutcome(path=entry.path)
        if force or digest(now) == entry.after:
            return _restore_backup(entry, folder, now)
        return _merge(entry, folder, now)
    except (OSError, ConfigError) as problem:
        return ChangeOutcome(path=entry.path, problem=_describe(problem))


def _restore_backup(entry: ManifestEntry, folder: Path, now: bytes | None) -> ChangeOutcome:
    backup = _read_backup(entry, folder)
    if now is not None and digest(now) != entry.after:
        write_new(folder / f"{_timestamp()}-{entry.path.name.lstrip('.')}", now)
    if backup is None:
        entry.path.resolve().unlink(missing_ok=True)
    else:
        replace(entry.path, backup, expected=now, private=False)
    return ChangeOutcome(path=entry.path)


def _read_backup(entry: ManifestEntry, folder: Path) -> bytes | None:
    if entry.backup is None:
        return None
    content = (folder / Path(entry.backup).name).read_bytes()
    if digest(content) != entry.before:
        raise ConfigError("its backup was modified", source=entry.path)
    return content


def _merge(entry: ManifestEntry, folder: Path, now: bytes | None) -> ChangeOutcome:
    """Reverts only our change. Raises ConfigError with instructions if that is not possible."""
    if now is None:
        raise ConfigError("was deleted; --force restores it", source=entry.path)
    backup = _read_backup(entry, folder)
    try:
        text, kept = _revert(now.decode(), (backup or b"").decode(), entry.reversal)
    except (ConfigError, UnicodeDecodeError) as problem:
        why = _describe_line(problem) if isinstance(problem, ConfigError) else "is not UTF-8 text"
        raise ConfigError(
            f"not changed: it was edited since, and {why}; correct that and undo again, "
            f"or use --force to restore the backup (the current file is then kept in {folder})",
            source=entry.path,
        ) from None
    if backup is None and not text.strip():
        entry.path.resolve().unlink()
    elif text.encode() != now:
        replace(entry.path, text.encode(), expected=now, private=False)
    return ChangeOutcome(path=entry.path, merged=True, kept=tuple(kept))


def _revert(now: str, before: str, reversal: Reversal | None) -> tuple[str, list[str]]:
    match reversal:
        case ServersTaken():
            return restore_servers(now, before, reversal)
        case BlocksAdded():
            return without_blocks(now, SECTION, reversal.blocks)
        case None:
            raise ConfigError("the manifest does not say what was changed in it", source="")


def _describe_line(problem: ConfigError) -> str:
    where = "" if problem.line is None else f" (line {problem.line})"
    return f"{problem.key} {problem.problem}".strip() + where


def _describe(problem: OSError | ConfigError) -> str:
    if isinstance(problem, OSError):
        return f"cannot be written: {problem.strerror}"
    return f"{problem.problem}: {problem.fix}" if problem.fix else problem.problem
