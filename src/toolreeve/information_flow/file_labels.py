"""Labels of files by content: text from outside stays untrusted.

A file that a call wrote is labelled if the text came from strangers, or if the command that wrote it fetched it. Only
what is labelled is looked for later, so ordinary work costs nothing.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.effects import CONTACTS
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files
from toolreeve.core.labels import Integrity, Labels
from toolreeve.policy.flow.memory import SessionMemory
from toolreeve.policy.flow.sources import FOREIGN
from toolreeve.record.flow_facts import FlowTable

MOST_BYTES = 4 << 20
MOST_FILES = 200
_MOST_LINES = 200
_BREAK = re.compile(r"[\s;|&<>()=]+")
_FRAGMENT = 40
"""Characters of a line that are no coincidence."""
_DEPENDENCIES = frozenset(("node_modules", ".venv", "venv", "site-packages", ".git", "__pycache__", ".tox", "target"))
"""Folders of installed packages: installing them was approved, and everything runs from them."""


class FileLabels:
    def __init__(self, table: FlowTable, files: Files, now: Callable[[], float]) -> None:
        self._table = table
        self._files = files
        self._now = now
        self._any = False

    async def start(self) -> None:
        self._any = await self._table.has_content_labels()

    def may_label(self, action: Action, memory: SessionMemory) -> bool:
        """Whether what the call wrote may come from outside."""
        if action.read_only:
            return False
        if action.spec.category == "shell":
            return any(effect.kind in CONTACTS for effect in action.recorded_effects)
        return memory.foreign_count > 0 and holds_foreign_text(action.args, memory)

    async def label(self, action: Action) -> None:
        """Label the content of the files that the call changed."""
        digests = await asyncio.to_thread(self._changed, action)
        if digests:
            self._any = True
            await self._table.label_content(digests, FOREIGN, call_id=action.call.id, at=self._now())

    async def foreign(self, action: Action) -> Mapping[str, str]:
        """The files that a command names whose content came from outside, with the call that wrote them."""
        if not self._any:
            return {}
        digests = await asyncio.to_thread(self._named, action)
        found = await self._table.labels_of(list(digests))
        return {digests[each]: "a file from outside" for each, labels in found.items() if _is_untrusted(labels)}

    def _changed(self, action: Action) -> list[str]:
        changes = self._files.changes(call_id=action.call.id)[:MOST_FILES]
        paths = [change.path for change in changes if not _DEPENDENCIES & set(change.path.split("/"))]
        return [digest for path in paths if (digest := self._digest(path)) is not None]

    def _named(self, action: Action) -> dict[str, str]:
        words = [word.strip("'\"") for word in _BREAK.split(str(action.args.get("command", "")))[:MOST_FILES]]
        return {digest: word for word in words if word and (digest := self._digest(word)) is not None}

    def _digest(self, path: str) -> str | None:
        try:
            with self._files.open(path) as reader:
                return hashlib.sha256(reader.read(0, MOST_BYTES)).hexdigest()
        except (ToolError, OSError, ValueError):  # not a file that may be read
            return None


def holds_foreign_text(args: Mapping[str, Any], memory: SessionMemory) -> bool:
    """Whether a long line of the arguments stands in what strangers wrote."""
    lines = [" ".join(line.split()).lower() for text in _texts(args) for line in text.splitlines()]
    long = [line for line in lines if len(line) >= _FRAGMENT][:_MOST_LINES]
    if not long:
        return False
    foreign = (result.text for result in memory.results if result.source.is_foreign)
    flat = (" ".join(text.replace("\\n", " ").split()) for text in foreign)
    return any(line in text for text in flat for line in long)


def _texts(args: Mapping[str, Any]) -> Iterator[str]:
    waiting: list[Any] = list(args.values())
    for _ in range(_MOST_LINES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            waiting.extend(value.values())
        elif isinstance(value, Sequence):
            waiting.extend(value)


def _is_untrusted(labels: Labels) -> bool:
    return labels.integrity is Integrity.UNTRUSTED
