"""Trusted folders: whose tools and servers may run, kept by digest.

A project's tools run only after the user trusted the folder in its current state. The digest covers the project's file
and every tool file it names: a change ends the trust. What a tool file imports is outside the digest; trust is about
the folder's authors, not a seal on every byte.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from toolreeve.core import json
from toolreeve.core.atomic import write_private
from toolreeve.core.errors import ConfigError

FILE = "trust.json"


class TrustedFolders:
    """The folders that the user trusts, stored in the state directory."""

    def __init__(self, state: Path) -> None:
        self.path = state / FILE

    def covers(self, folder: Path, digest: str) -> bool:
        return self._read().get(str(folder)) == digest

    def knows(self, folder: Path) -> bool:
        return str(folder) in self._read()

    def add(self, folder: Path, digest: str) -> None:
        self._write(self._read() | {str(folder): digest})

    def revoke(self, folder: Path) -> bool:
        """False if the folder was not trusted."""
        kept = self._read()
        if kept.pop(str(folder), None) is None:
            return False
        self._write(kept)
        return True

    def _read(self) -> dict[str, str]:
        try:
            found = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as problem:
            raise self._unreadable(str(problem)) from None
        if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
            raise self._unreadable("it does not map folders to digests")
        return found

    def _unreadable(self, problem: str) -> ConfigError:
        return ConfigError(
            f"cannot be read: {problem}", source=self.path, fix="delete it and run `toolreeve trust` again"
        )

    def _write(self, folders: dict[str, str]) -> None:
        write_private(self.path, json.pretty(folders).encode())


def digest_of(files: Sequence[Path]) -> str:
    """One digest over names and contents; missing and unreadable files are hashed as such."""
    total = hashlib.sha256()
    for path in files:
        content = _digest(path) if path.is_file() else "missing"
        total.update(f"{path}\0{content}\0".encode("utf-8", "surrogateescape"))
    return total.hexdigest()


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as problem:
        return f"unreadable: {problem.strerror}"
