"""Terminal confirmation. Neither earlier nor piped input counts as a yes.

A program that runs commands for a model has no terminal to answer on, so decisions that only a person may make are
confirmed here.
"""

from collections.abc import Mapping

import click

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.visible import visible


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


async def choose(question: str, choices: Mapping[str, str]) -> str | None:
    """The choice typed, by its name or the beginning of it; the first one for an empty line. Asks again until one
    matches. None without a terminal."""
    from toolreeve.approval.channels.tty import Hangup, find_terminal, open_console

    device = find_terminal(None)
    if device is None:
        return None
    meanings = "".join(f"  {name}: {meaning}\n" for name, meaning in choices.items())
    with open_console(device) as console:
        await console.say(f"\n{visible(question)}\n{meanings}")
        console.discard_typed()
        while True:
            await console.say(f"[{' | '.join(choices)}] (Enter: {next(iter(choices))}): ")
            try:
                typed = (await console.line()).lower()
            except Hangup as problem:
                raise ToolError(ErrorCode.PERMISSION, f"nothing was decided: {problem}") from None
            matching = [name for name in choices if name == typed] or [n for n in choices if n.startswith(typed)]
            if not typed or len(matching) == 1:
                return matching[0]
            await console.say(f"{typed!r} is none of them, or the beginning of several\n")
