"""Edits the arguments of a pending call: merged, validated, judged, shown again."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import Options
from toolreeve.cli.output import note
from toolreeve.core import json
from toolreeve.core.errors import ToolError

if TYPE_CHECKING:
    from toolreeve.approval.request import Request
    from toolreeve.record.pending_table import PendingRow

Edit = Callable[..., Awaitable["tuple[Request, dict[str, Any]] | None"]]


async def edit_approval(
    options: Options, row: "PendingRow", changes: tuple[str, ...], *, yes: bool
) -> "tuple[Request, dict[str, Any]] | None":
    """The question and the edited arguments; None if the person did not agree. Raises UsageError."""
    from toolreeve.approval.pending import read_question
    from toolreeve.approval.prompt import describe
    from toolreeve.cli.confirm import confirm

    request = read_question(row.id, row.question)
    if request.tried:
        raise click.UsageError("the call has run on trial already: its arguments cannot be edited")
    args = _merge(request.args, changes) if changes else _edit_file(request.args)
    try:
        edited = await judge_anew(options, request, args)
    except ToolError as problem:
        raise click.UsageError(f"the edited call is not valid: {problem.message}") from None
    if edited.danger > request.danger:
        note(f"the edited call is more dangerous: {edited.danger.value} instead of {request.danger.value}")
    if not yes and not await confirm("Allow it with these arguments?", shown=describe(edited, whole=True)):
        return None
    return request, dict(edited.args)


def _merge(args: Mapping[str, Any], changes: tuple[str, ...]) -> dict[str, Any]:
    """A value is JSON, or else a text."""
    merged = dict(args)
    for change in changes:
        name, found, text = change.partition("=")
        if not found or not name:
            raise click.UsageError(f"{change!r} is not NAME=VALUE")
        try:
            merged[name] = json.loads(text)
        except ValueError:
            merged[name] = text
    return merged


def _edit_file(args: Mapping[str, Any]) -> dict[str, Any]:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise click.UsageError("set EDITOR, or give the changed arguments as NAME=VALUE")
    descriptor, name = tempfile.mkstemp(prefix="toolreeve-", suffix=".json")
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.pretty(dict(args)))
        subprocess.run([*shlex.split(editor), name], check=False)
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise click.UsageError(f"the arguments are not valid JSON: {problem}") from None
    finally:
        path.unlink(missing_ok=True)
    if not isinstance(found, dict):
        raise click.UsageError("the arguments must be a JSON object")
    return found


async def judge_anew(options: Options, request: "Request", args: Mapping[str, Any]) -> "Request":
    """The question about the edited call, with its own effects and change. Raises ToolError if it is not valid, or is
    denied."""
    from toolreeve.cli.runtime import runtime_with

    async with runtime_with(options, [request.tool]) as reeve:
        return await reeve.approvals.judge_edit(request, args)
