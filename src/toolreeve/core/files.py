"""What can a tool do with files? The capability `Context.files`; `guard/workspace.py` is the one that keeps it."""

from typing import Protocol


class Files(Protocol):
    @property
    def root(self) -> str: ...
