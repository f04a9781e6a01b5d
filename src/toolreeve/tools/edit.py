"""Tools that write, edit, delete and move files.

A change is whole or absent, and the former content is kept for undo; `undoable` is false when it was too large.
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

MAX_EDITED = 16 * 1024 * 1024
MAX_DIFF = 64 * 1024
_ATTEMPTS = 4


@tool(danger=DangerLevel.MEDIUM, category="file", effects=writing(), inline=True)
async def write_file(
    ctx: Context, path: str, content: str, encoding: str = "utf-8", *, create_dirs: bool = True, append: bool = False
) -> Output:
    """Write text to a file: replace the whole file, or append to it.

    Args:
        path: The file, relative to the workspace or absolute within it.
        content: The text to write.
        encoding: The encoding of the text.
        create_dirs: Create missing parent directories.
        append: Append instead of replacing.
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
        main=f"wrote {_bytes(len(data))} to {changed.path}",
    )


def _bytes(number: int) -> str:
    return "1 byte" if number == 1 else f"{number} bytes"


def _encode(content: str, encoding: str) -> bytes:
    try:
        return content.encode(text.find_encoding(encoding).name)
    except UnicodeEncodeError as problem:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"/content: {content[problem.start]!r} at position {problem.start} cannot be written in {encoding}",
        ) from None


def _edit_effects(args: Arguments, files: Files) -> Sequence[Effect]:
    """The text around the edits is read and shown."""
    path = target(args, "path", files)
    read = Effect(EffectKind.READ, path)
    if args.get("dry_run") is True:
        return (read,)
    return (Effect(EffectKind.WRITE, path), read)


_EDIT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file, relative to the workspace or absolute within it."},
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "Replacements, applied in this order.",
            "items": {
                "type": "object",
                "properties": {
                    "old": {"type": "string", "minLength": 1, "description": "Text that occurs exactly once."},
                    "new": {"type": "string", "description": "The replacement."},
                },
                "required": ["old", "new"],
                "additionalProperties": False,
            },
        },
        "dry_run": {"type": "boolean", "default": False, "description": "Show the diff, change nothing."},
    },
    "required": ["path", "edits"],
    "additionalProperties": False,
}


@tool(danger=DangerLevel.MEDIUM, category="file", effects=_edit_effects, inline=True, input_schema=_EDIT_SCHEMA)
async def edit_file(ctx: Context, path: str, edits: list[dict[str, str]], *, dry_run: bool = False) -> Output:
    """Replace exact, unique pieces of a text file. Either all edits are applied or none."""
    replacements = [Edit(old=edit["old"], new=edit["new"]) for edit in edits]
    for attempt in range(_ATTEMPTS):
        draft: _Draft = await run_interruptibly(lambda: _prepare(ctx.files, path, replacements))
        if dry_run:
            return _edit_output(draft, edits=len(edits), dry_run=True, undoable=True)
        try:
            changed = await ctx.files.write(ctx.call, path, draft.content, create_dirs=False, expect=draft.expect)
            return _edit_output(draft, edits=len(edits), dry_run=False, undoable=changed.undoable)
        except ToolError as problem:
            # The file changed in between: apply the edits to the new content.
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
        if file.size > MAX_EDITED:
            most = MAX_EDITED // 1024 // 1024
            raise ToolError(ErrorCode.READ_ERROR, f"{path}: files above {most} MB are not edited", retryable=False)
        data = file.read(0, file.size)
    try:
        old = data.decode()
    except UnicodeDecodeError as problem:
        raise text.undecodable(data, problem, "utf-8", path) from None
    new = replace_all(old, edits)
    diff = unified_diff(old, new, files.relative(file.path))
    return _Draft(path=file.path, content=new.encode(), diff=diff, expect=files.fingerprint_of(data))


def _edit_output(draft: _Draft, *, edits: int, dry_run: bool, undoable: bool) -> Output:
    cut = len(draft.diff) > MAX_DIFF
    shown = draft.diff[:MAX_DIFF] if cut else draft.diff
    data = {"diff": shown, "path": draft.path, "edits": edits, "dry_run": dry_run, "undoable": undoable}
    return Output(data=data | ({"truncated": True} if cut else {}), main=shown, truncated=cut)


def _delete_effects(args: Arguments, files: Files) -> Sequence[Effect]:
    return removing(args, "path", files)


@tool(danger=DangerLevel.HIGH, category="file", effects=_delete_effects, inline=True, idempotent=True)
async def delete_file(ctx: Context, path: str) -> Output:
    """Delete a file, or a link (never its target). A missing file is not an error.

    Args:
        path: The file, relative to the workspace or absolute within it.
    """
    gone = await ctx.files.delete(ctx.call, path)
    data = {"deleted": gone.existed, "existed": gone.existed, "path": gone.path, "undoable": gone.undoable}
    return Output(data=data, main=f"{'deleted' if gone.existed else 'did not exist'}: {gone.path}")


def _move_effects(args: Arguments, files: Files) -> Sequence[Effect]:
    """A moved file can be read under its new name, so rules about reading it apply as well."""
    gone = removing(args, "source", files)
    arriving = Effect(EffectKind.WRITE, target(args, "destination", files), gone[0].reach)
    return (*gone, arriving, *(Effect(EffectKind.READ, each.target, each.reach) for each in gone))


@tool(danger=DangerLevel.MEDIUM, category="file", effects=_move_effects, inline=True)
async def move_file(
    ctx: Context, source: str, destination: str, *, overwrite: bool = False, create_dirs: bool = True
) -> Output:
    """Move or rename a file or a directory.

    Args:
        source: What to move.
        destination: Its new path, including its name.
        overwrite: Replace an existing file.
        create_dirs: Create missing parent directories.
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


EDIT_TOOLS = (write_file, edit_file, delete_file, move_file)
