"""A guarded workspace between files that it must never reach."""

import asyncio
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Literal, TypeVar

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.guard.files.workspace import WorkspaceFiles

CANARY = b"CANARY: this lies outside the workspace"
CALL = ToolCall(tool="test", args={})
T = TypeVar("T")


class GuardedWorkspace:
    def __init__(self, top: Path, *, backend: Literal["openat2", "walk"]) -> None:
        self.backend: Literal["openat2", "walk"] = backend
        self.outside = top / "outside"
        self.root = top / "work"
        self.sibling = top / "work-sibling"
        for directory in (self.outside, self.root, self.sibling):
            directory.mkdir()
        (self.outside / "secret.txt").write_bytes(CANARY)
        (self.sibling / "secret.txt").write_bytes(CANARY)
        (self.root / "docs").mkdir()
        (self.root / "docs" / "note.txt").write_text("inside")
        self.files = self.workspace()
        self._others: list[WorkspaceFiles] = []

    def workspace(self, **options: Any) -> WorkspaceFiles:
        made = WorkspaceFiles(self.root, backend=self.backend, **options)
        if hasattr(self, "_others"):
            self._others.append(made)
        return made

    def close(self) -> None:
        for each in (self.files, *self._others):
            each.close()

    def read(self, path: str) -> bytes:
        return self.files.read(path, 1000).data

    def refusal(self, path: str) -> ErrorCode:
        """The code with which reading is refused."""
        try:
            data = self.read(path)
        except ToolError as problem:
            return problem.code
        raise AssertionError(f"{path!r} was read: {data!r}")

    def write_refusal(self, path: str, **options: Any) -> ErrorCode:
        try:
            run(self.files.write(CALL, path, b"overwritten", **options))
        except ToolError as problem:
            return problem.code
        raise AssertionError(f"{path!r} was written")

    def leftovers(self) -> list[str]:
        """Temporary names anywhere in the workspace."""
        return [name for _, _, names in os.walk(self.root) for name in names if name.startswith(".toolreeve-")]

    def canaries_live(self) -> bool:
        return (self.outside / "secret.txt").read_bytes() == CANARY == (self.sibling / "secret.txt").read_bytes()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)
