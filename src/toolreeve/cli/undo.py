"""`toolreeve undo`: a call like any other, with its own decision and record.

Typing the command is the approval, so nobody is asked again; what the policy denies stays denied.
"""

import asyncio

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.result import show_result


@click.command(cls=CliCommand)
@click.argument("call_id", required=False, metavar="[CALL]")
@click.option("--session", help="Undo the changes of all calls of this session.")
@click.option("--force", is_flag=True, help="Also undo files that were changed since.")
def undo(call_id: str | None, session: str | None, *, force: bool) -> int:
    """Undo the file changes of a call or a session."""
    if (call_id is None) == (session is None):
        raise click.UsageError("name a CALL, or a session with --session")
    return asyncio.run(_undo(current(), call_id, session, force=force))


async def _undo(options: Options, call_id: str | None, session: str | None, *, force: bool) -> int:
    from toolreeve.approval.channels.callback import CallbackChannel
    from toolreeve.cli.runtime import new_runtime, no_servers

    typed = CallbackChannel(lambda request: request.allow(by="the command line"), name="command line")
    async with new_runtime(options, typed, servers=no_servers) as runtime:
        result = await runtime.undo(call_id, session=session, force=force)
    return show_result(options, result)
