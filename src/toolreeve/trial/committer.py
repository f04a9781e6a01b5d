"""Committer: commits the harvests of a call, noted for undo.

Staged → noted durably → journalled and swapped in: a change that is made can always be undone. Several trees of one
call are committed all or none.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Change
from toolreeve.trial.commits import Commits, PreparedCommit
from toolreeve.trial.harvest import Harvest

NoteChange = Callable[[ToolCall, Change], Awaitable[None]]


class Committer:
    def __init__(self, commits: Commits, note: NoteChange) -> None:
        self._commits = commits
        self._note = note

    async def commit(
        self, call: ToolCall, harvests: Sequence[Harvest], chosen: Collection[str] | None = None
    ) -> Sequence[str]:
        """Commit all changes that matter, or those of the chosen absolute paths with what they need; returns the ids.

        Raises ToolError(WRITE_ERROR) if the real tree was changed meanwhile or something cannot be committed; then
        nothing was. Not interrupted when its caller is cancelled.
        """
        return await asyncio.shield(asyncio.create_task(self._commit(call, harvests, chosen)))

    async def _commit(
        self, call: ToolCall, harvests: Sequence[Harvest], chosen: Collection[str] | None
    ) -> Sequence[str]:
        prepared: list[PreparedCommit] = []
        try:
            for harvest in sorted(harvests, key=lambda each: each.layer.root):
                paths = None if chosen is None else _below(harvest.layer.root, chosen)
                if harvest.kept if paths is None else paths:
                    prepared.append(await asyncio.to_thread(self._commits.prepare, harvest, paths))
            for each in prepared:
                await self._note(call, commit_row(each.plan.root, each.plan.id))
        except BaseException:
            for each in prepared:
                await asyncio.to_thread(each.drop)
            raise
        return await asyncio.to_thread(self._apply, prepared)

    def _apply(self, prepared: Sequence[PreparedCommit]) -> Sequence[str]:
        for number, each in enumerate(prepared):
            try:
                each.apply()
            except ToolError:
                for later in prepared[number + 1 :]:
                    later.drop()
                for done in prepared[:number]:
                    self._commits.toggle(done.plan.id, undo=True)
                raise
        return [each.plan.id for each in prepared]


def commit_row(root: str, id_: str) -> Change:
    """The row of a commit in the undo table."""
    return Change(kind="commit", path=root, before=f"commit:{id_}")


def _below(root: str, paths: Collection[str]) -> list[str]:
    prefix = f"{root.rstrip('/')}/"
    return [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
