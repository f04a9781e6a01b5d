"""Confirmation on the terminal. Neither earlier nor piped input counts as a yes.

A program that runs commands for a model has no terminal to answer on, so decisions that only a person may make are
confirmed here.
"""

import click

from toolreeve.core.errors import ErrorCode, ToolError


async def confirm(question: str, *, shown: str = "") -> bool:
    """Raises UsageError without a terminal. A model may read that message: it names no way to skip the question."""
    from toolreeve.approval.channels.tty import Hangup, find_terminal, open_console

    device = find_terminal(None)
    if device is None:
        raise click.UsageError("this needs confirmation by a person: run it in a terminal")
    with open_console(device) as console:
        await console.say(f"\n{shown}\n" if shown else "")
        console.discard_typed()
        await console.say(f"{question} [y/n]: ")
        try:
            return (await console.line()).lower() in ("y", "yes")
        except Hangup as problem:
            raise ToolError(ErrorCode.PERMISSION, f"nothing was decided: {problem}") from None
