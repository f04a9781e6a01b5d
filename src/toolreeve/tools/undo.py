"""How does a call take back file changes? As a tool like any other: decided, approved, recorded."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.tool import FunctionTool, tool


class Restored(Protocol):
    @property
    def outcome(self) -> str: ...
    @property
    def path(self) -> str: ...
    def to_dict(self) -> Mapping[str, str]: ...


class Restorer(Protocol):
    """What keeps the former contents and brings them back."""

    async def restore(
        self, call: ToolCall, files: Files, *, call_id: str | None, session: str | None, force: bool
    ) -> Sequence[Restored]: ...


def undo_tool(restorer: Restorer) -> FunctionTool:
    @tool(danger=DangerLevel.MEDIUM, category="file")
    async def undo(
        ctx: Context, call_id: str | None = None, session: str | None = None, *, force: bool = False
    ) -> Output:
        """Take back the file changes of one call or of a whole session, newest first.

        Args:
            call_id: The call whose changes to take back.
            session: The session whose changes to take back.
            force: Take back even what was changed since.
        """
        outcomes = await restorer.restore(ctx.call, ctx.files, call_id=call_id, session=session, force=force)
        files = [each.to_dict() for each in outcomes]
        failed = [each.path for each in outcomes if each.outcome == "failed"]
        if failed:
            raise ToolError(
                ErrorCode.WRITE_ERROR,
                f"{len(failed)} of {len(files)} changes could not be taken back: {', '.join(failed[:10])}",
                detail=files,
                retryable=False,
            )
        restored = [each.path for each in outcomes if each.outcome == "restored"]
        return Output(data={"restored": len(restored), "files": files}, main=restored)

    return undo
