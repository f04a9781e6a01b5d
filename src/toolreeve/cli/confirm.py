"""Does the person at the terminal say yes? Nothing else is a yes: not what was typed before, not what is piped in.

A program that runs commands for a model has no terminal to answer on, so what only a person may decide is asked here.
"""

import click

from toolreeve.core.errors import ErrorCode, ToolError


async def confirmed(question: str, *, shown: str = "") -> bool:
    """Raises UsageError where nobody can be asked. Who reads that may be a model: it is not told how to do without."""
    from toolreeve.approval.channels.tty import Hangup, find_terminal, open_console

    device = find_terminal(None)
    if device is None:
        raise click.UsageError("there is no terminal here, and only a person may answer this: run it in one")
    with open_console(device) as console:
        await console.say(f"\n{shown}\n" if shown else "")
        console.discard_typed()
        await console.say(f"{question} [y/n]: ")
        try:
            return (await console.line()).lower() in ("y", "yes")
        except Hangup as problem:
            raise ToolError(ErrorCode.PERMISSION, f"nothing was decided: {problem}") from None
