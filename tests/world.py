"""A workspace and a state directory per test, and runtimes for them."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace


class World:
    def __init__(self, place: Path, state: Path | None = None) -> None:
        self.workspace = place / "work"
        self.state = state or place / "state"
        self.workspace.mkdir()

    def settings(self, **changes: Any) -> Settings:
        base: dict[str, Any] = {
            "workspace": Workspace(dir=str(self.workspace)),
            "state": State(dir=str(self.state)),
        }
        return Settings(**base | changes)

    def reeve(self, **options: Any) -> Toolreeve:
        return Toolreeve(settings=options.pop("settings", None) or self.settings(), **options)

    def database_bytes(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.state.rglob("*") if path.is_file())

    @asynccontextmanager
    async def database_locked(self) -> AsyncIterator[None]:
        """Another process that holds the database lock."""
        other = sqlite3.connect(self.state / "toolreeve.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.rollback()
            other.close()

    @asynccontextmanager
    async def database_broken(self) -> AsyncIterator[None]:
        """A database that rejects every record, and is repaired afterwards."""
        other = sqlite3.connect(self.state / "toolreeve.db", isolation_level=None, timeout=30)
        other.execute("ALTER TABLE audit RENAME TO away")
        try:
            yield
        finally:
            other.execute("ALTER TABLE away RENAME TO audit")
            other.close()
