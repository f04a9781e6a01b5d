"""What may be changed in the workspace? Tools that write, edit, delete and move files.

A change is whole or absent, and what it replaced is kept for undo; `undoable` is false when that was too large.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.tool import Arguments, tool
from toolreeve.tools import text
from toolreeve.tools.replacing import Edit, replace_all
from toolreeve.tools.spoken import deleting, writing

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


@tool(danger=DangerLevel.MEDIUM, category="file", effects=writing(), inline=True, input_schema=_EDIT_SCHEMA)
async def edit_file(ctx: Context, path: str, edits: list[dict[str, str]], *, dry_run: bool = False) -> Output:
    """Replace exact, unique pieces of a text file. All edits are made, or none."""
    replacements = [Edit(old=edit["old"], new=edit["new"]) for edit in edits]
    for attempt in range(_ATTEMPTS):
        resolved, old, expect = _read_whole(ctx.files, path)
        new = replace_all(old, replacements)
        diff = _diff(old, new, ctx.files.relative(resolved))
        if dry_run:
            return _edited(resolved, diff, edits=len(edits), dry_run=True, undoable=True)
        try:
            changed = await ctx.files.write(ctx.call, path, new.encode(), create_dirs=False, expect=expect)
            return _edited(changed.path, diff, edits=len(edits), dry_run=False, undoable=changed.undoable)
        except ToolError as problem:
            # Somebody else wrote in between: the edits are made anew on what is there now.
            if not problem.retryable or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _read_whole(files: Files, path: str) -> tuple[str, str, str]:
    """The resolved path, the text as it stands, and the fingerprint it must still have when it is replaced."""
    with files.open(path) as file:
        if file.size > LARGEST_EDITED:
            most = LARGEST_EDITED // 1024 // 1024
            raise ToolError(ErrorCode.READ_ERROR, f"{path}: files above {most} MB are not edited", retryable=False)
        data = file.read(0, file.size)
        try:
            return file.path, data.decode(), files.fingerprint_of(data)
        except UnicodeDecodeError as problem:
            raise text.undecodable(data, problem, "utf-8", path) from None


def _diff(old: str, new: str, name: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}", n=3
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _edited(path: str, diff: str, *, edits: int, dry_run: bool, undoable: bool) -> Output:
    cut = len(diff) > LONGEST_DIFF
    shown = diff[:LONGEST_DIFF] if cut else diff
    data = {"diff": shown, "path": path, "edits": edits, "dry_run": dry_run, "undoable": undoable}
    return Output(data=data | ({"truncated": True} if cut else {}), main=shown, truncated=cut)


@tool(danger=DangerLevel.HIGH, category="file", effects=deleting(), inline=True, idempotent=True)
async def delete_file(ctx: Context, path: str) -> Output:
    """Delete a file, or a link (never what it points to). A file that is not there is no error.

    Args:
        path: The file, relative to the workspace or absolute within it.
    """
    gone = await ctx.files.delete(ctx.call, path)
    data = {"deleted": gone.existed, "existed": gone.existed, "path": gone.path, "undoable": gone.undoable}
    return Output(data=data, main=f"{'deleted' if gone.existed else 'was not there'}: {gone.path}")


def _moving(args: Arguments, files: Files) -> Sequence[Effect]:
    return (
        Effect(EffectKind.DELETE, files.target(args["source"])),
        Effect(EffectKind.WRITE, files.target(args["destination"])),
    )


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
