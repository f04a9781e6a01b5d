"""Tools about earlier calls: `undo` restores files, `read_output` reads on."""

from collections.abc import Sequence

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.tool import Arguments, tool
from toolreeve.tools.effects import next_call, nothing, touching

_NOTICE_CHARS = 200
"""Room for the notice that names the next call."""


def _list_effects(args: Arguments, files: Files) -> Sequence[Effect]:
    """Undoing a change writes or deletes what it changed: rules about those paths apply to undo as well."""
    effects: dict[Effect, None] = {}
    for change in files.changes(call_id=args.get("call_id"), session=args.get("session")):
        if change.to:
            moved = touching(EffectKind.WRITE if change.before else EffectKind.DELETE, change.to, files)
            effects[Effect(EffectKind.WRITE, change.path, moved.reach)] = None
            effects[moved] = None
        else:
            restored = EffectKind.DELETE if change.before is None else EffectKind.WRITE
            effects[Effect(restored, change.path, Reach.EXACT)] = None
    return tuple(effects)


def _check_owner(args: Arguments, ctx: Context) -> None:
    """Before anyone is asked: the question would show the files of others."""
    call_id = args.get("call_id")
    session = args.get("session")
    if (call_id is None) != (session is None):
        ctx.undo.check(ctx.call, call_id=call_id, session=session)


@tool(danger=DangerLevel.SAFE, category="system", effects=nothing, inline=True, source="toolreeve")
async def read_output(ctx: Context, call_id: str, offset: int = 0) -> Output:
    """Read on in a result of this session that was cut because it was too long.

    Args:
        call_id: The call whose result was cut.
        offset: The first character to show.
    """
    kept = ctx.outputs.read(ctx.call, call_id)
    if not 0 <= offset <= len(kept.text):
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/offset: must be from 0 to {len(kept.text)}, got {offset}")
    room = ctx.outputs.chars - _NOTICE_CHARS
    end = min(offset + room, len(kept.text))
    if end < len(kept.text):
        end = kept.text.rfind("\n", offset + room * 3 // 4, end) + 1 or end
    content = kept.text[offset:end]
    data = {"content": content, "call_id": call_id, "offset": offset, "total": len(kept.text)}
    if end < len(kept.text):
        data |= {"truncated": True, "next": next_call("read_output", call_id=call_id, offset=end)}
    return Output(data=data, main=content, truncated=end < len(kept.text), labels=kept.labels)


@tool(
    danger=DangerLevel.MEDIUM,
    category="file",
    effects=_list_effects,
    screen=_check_owner,
    inline=True,
    blocking=True,
    source="toolreeve",
)
async def undo(ctx: Context, call_id: str | None = None, session: str | None = None, *, force: bool = False) -> Output:
    """Undo the file changes of a call, or of all calls of a session. Changes nothing if a file was changed since.

    Args:
        call_id: The call whose changes to undo.
        session: The session whose changes to undo.
        force: Undo as much as possible, even where a file was changed since.
    """
    outcomes = await ctx.undo.restore(ctx.call, ctx.files, call_id=call_id, session=session, force=force)
    files = [each.to_dict() for each in outcomes]
    failed = [each for each in files if each["outcome"] == "failed"]
    if failed:
        reasons = "; ".join(f"{each['path']}: {each.get('reason', '')}" for each in failed)
        raise ToolError(ErrorCode.WRITE_ERROR, f"not everything could be undone: {reasons}", data={"files": files})
    return Output(
        data={"files": files, "count": len(files)},
        main="\n".join(f"{each['outcome']}: {each['path']}" for each in files),
    )
