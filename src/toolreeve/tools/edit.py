"""What may be changed in the workspace? Tools that write, edit, delete and move files.

A change is whole or absent, and what it replaced is kept for undo; `undoable` is false when that was too large.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.threads import run_interruptibly
from toolreeve.core.tool import Arguments, tool
from toolreeve.tools import text
from toolreeve.tools.edits import Edit, replace_all, unified_diff
from toolreeve.tools.effects import removing, target, writing

LARGEST_EDITED = 16 * 1024 * 1024
LONGEST_DIFF = 64 * 1024
_ATTEMPTS = 4


@tool(danger=DangerLevel.MEDIUM, category="file", effects=writing(), inline=True)
async def write_file(
    ctx: Context, path: str, content: str, encoding: str = "utf-8", *, create_dirs: bool = True, append: bool = False
) -> Output:
    """Write text to a file, replacing it whole or adding to its end.

    Args:
        path: The file, relative to the workspace or absolute within it.
        content: The text to write.
        encoding: The encoding of the text.
        create_dirs: Make missing directories on the way.
        append: Add to the end instead of replacing.
    """
    data = _encode(content, encoding)
    changed = await ctx.files.write(ctx.call, path, data, append=append, create_dirs=create_dirs)
    return Output(
        data={
            "written": True,
            "path": changed.path,
            "size": changed.size,
            "mode": "append" if append else "write",
            "existed": changed.existed,
            "undoable": changed.undoable,
        },
        main=f"wrote {len(data)} bytes to {changed.path}",
    )


def _encode(content: str, encoding: str) -> bytes:
    try:
        return content.encode(text.find_encoding(encoding).name)
    except UnicodeEncodeError as problem:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"/content: {content[problem.start]!r} at position {problem.start} cannot be written in {encoding}",
        ) from None


def _editing(args: Arguments, files: Files) -> Sequence[Effect]:
    """What surrounds the edits is read and shown."""
    path = target(args, "path", files)
    read, write = Effect(EffectKind.READ, path), Effect(EffectKind.WRITE, path)
    return (read,) if args.get("dry_run") is True else (write, read)


_EDIT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the workspace or absolute within it."},
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "Replacements, made in this order.",
            "items": {
                "type": "object",
                "properties": {
                    "old": {"type": "string", "minLength": 1, "description": "Text that occurs exactly once."},
                    "new": {"type": "string", "description": "What stands there afterwards."},
                },
                "required": ["old", "new"],
                "additionalProperties": False,
            },
        },
        "dry_run": {"type": "boolean", "default": False, "description": "Show the difference, change nothing."},
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}


@tool(danger=DangerLevel.MEDIUM, category="file", effects=_editing, inline=True, input_schema=_EDIT_SCHEMA)
async def edit_file(ctx: Context, path: str, edits: list[dict[str, str]], *, dry_run: bool = False) -> Output:
    """Replace exact, unique pieces of a text file. All edits are made, or none."""
    replacements = [Edit(old=edit["old"], new=edit["new"]) for edit in edits]
    for attempt in range(_ATTEMPTS):
        draft: _Draft = await run_interruptibly(lambda: _prepare(ctx.files, path, replacements))
        if dry_run:
            return _edited(draft, edits=len(edits), dry_run=True, undoable=True)
        try:
            changed = await ctx.files.write(ctx.call, path, draft.content, create_dirs=False, expect=draft.expect)
            return _edited(draft, edits=len(edits), dry_run=False, undoable=changed.undoable)
        except ToolError as problem:
            # Somebody else wrote in between: the edits are made anew on what is there now.
            if not problem.retryable or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """An edited text; `expect` is the fingerprint that the file must still have when it is replaced."""

    path: str
    content: bytes
    diff: str
    expect: str


def _prepare(files: Files, path: str, edits: Sequence[Edit]) -> _Draft:
    with files.open(path) as file:
        if file.size > LARGEST_EDITED:
            most = LARGEST_EDITED // 1024 // 1024
            raise ToolError(ErrorCode.READ_ERROR, f"{path}: files above {most} MB are not edited", retryable=False)
        data = file.read(0, file.size)
    try:
        old = data.decode()
    except UnicodeDecodeError as problem:
        raise text.undecodable(data, problem, "utf-8", path) from None
    new = replace_all(old, edits)
    diff = unified_diff(old, new, files.relative(file.path))
    return _Draft(path=file.path, content=new.encode(), diff=diff, expect=files.fingerprint_of(data))


def _edited(draft: _Draft, *, edits: int, dry_run: bool, undoable: bool) -> Output:
    cut = len(draft.diff) > LONGEST_DIFF
    shown = draft.diff[:LONGEST_DIFF] if cut else draft.diff
    data = {"diff": shown, "path": draft.path, "edits": edits, "dry_run": dry_run, "undoable": undoable}
    return Output(data=data | ({"truncated": True} if cut else {}), main=shown, truncated=cut)


def _deleting(args: Arguments, files: Files) -> Sequence[Effect]:
    return removing(args, "path", files)


@tool(danger=DangerLevel.HIGH, category="file", effects=_deleting, inline=True, idempotent=True)
async def delete_file(ctx: Context, path: str) -> Output:
    """Delete a file, or a link (never what it points to). A file that is not there is no error.

    Args:
        path: The file, relative to the workspace or absolute within it.
    """
    gone = await ctx.files.delete(ctx.call, path)
    data = {"deleted": gone.existed, "existed": gone.existed, "path": gone.path, "undoable": gone.undoable}
    return Output(data=data, main=f"{'deleted' if gone.existed else 'was not there'}: {gone.path}")


def _moving(args: Arguments, files: Files) -> Sequence[Effect]:
    """What is moved can be read under its new name, so rules about reading it hold as well."""
    gone = removing(args, "source", files)
    arriving = Effect(EffectKind.WRITE, target(args, "destination", files), gone[0].reach)
    return (*gone, arriving, *(Effect(EffectKind.READ, each.target, each.reach) for each in gone))


@tool(danger=DangerLevel.MEDIUM, category="file", effects=_moving, inline=True)
async def move_file(
    ctx: Context, source: str, destination: str, *, overwrite: bool = False, create_dirs: bool = True
) -> Output:
    """Move or rename a file or a directory.

    Args:
        source: What to move.
        destination: Its new path, including its name.
        overwrite: Replace a file that is already there.
        create_dirs: Make missing directories on the way.
    """
    moved = await ctx.files.move(ctx.call, source, destination, overwrite=overwrite, create_dirs=create_dirs)
    data = {
        "moved": True,
        "source": ctx.files.target(source),
        "destination": moved.path,
        "path": moved.path,
        "overwritten": moved.existed,
        "undoable": moved.undoable,
    }
    return Output(data=data, main=f"moved {source} to {moved.path}")


CHANGING_TOOLS = (write_file, edit_file, delete_file, move_file)
