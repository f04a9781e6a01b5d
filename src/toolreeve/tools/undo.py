"""Can it be taken back? The tool that restores files as they were before a call, or a whole session, changed them."""

from collections.abc import Sequence

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.tool import Arguments, tool
from toolreeve.tools.effects import touching


def _list_effects(args: Arguments, files: Files) -> Sequence[Effect]:
    """Taking a change back writes or deletes what it changed: rules about those places hold for undo as well."""
    effects: dict[Effect, None] = {}
    for change in files.changes(call_id=args.get("call_id"), session=args.get("session")):
        gone = change.before is None and not change.to
        back = EffectKind.DELETE if gone else EffectKind.WRITE
        moved = touching(EffectKind.WRITE if change.before else EffectKind.DELETE, change.to, files)
        effects[Effect(back, change.path, moved.reach if change.to else Reach.EXACT)] = None
        if change.to:
            effects[moved] = None
    return tuple(effects)


@tool(danger=DangerLevel.MEDIUM, category="file", effects=_list_effects, inline=True, blocking=True, source="toolreeve")
async def undo(ctx: Context, call_id: str | None = None, session: str | None = None, *, force: bool = False) -> Output:
    """Take back what a call, or all calls of a session, changed in files. Changes nothing where a file changed since.

    Args:
        call_id: The call whose changes to take back.
        session: The session whose changes to take back.
        force: Take back what can be, even where a file was changed since.
    """
    outcomes = await ctx.undo.restore(ctx.call, ctx.files, call_id=call_id, session=session, force=force)
    files = [each.to_dict() for each in outcomes]
    failed = [each for each in files if each["outcome"] == "failed"]
    if failed:
        told = "; ".join(f"{each['path']}: {each.get('reason', '')}" for each in failed)
        raise ToolError(ErrorCode.WRITE_ERROR, f"not everything could be taken back: {told}", data={"files": files})
    return Output(
        data={"files": files, "count": len(files)},
        main="\n".join(f"{each['outcome']}: {each['path']}" for each in files),
    )
