"""`toolreeve undo`: an ordinary call, with its own decision and record.

Typing the command is the approval, so nobody is asked again; what the policy denies stays denied.
"""

import asyncio

import click

from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.result import show_result
from toolreeve.cli.suggestions import complete_calls


@click.command(cls=CliCommand)
@click.argument("call_id", required=False, metavar="[CALL]", shell_complete=complete_calls)
@click.option("--session", help="Undo the changes of all calls of this session.")
@click.option("--last", is_flag=True, help="Undo the changes of the last call that has any in this workspace.")
@click.option("--force", is_flag=True, help="Also undo files that were changed since.")
def undo(call_id: str | None, session: str | None, *, last: bool, force: bool) -> int:
    """Undo the changes that a call or a session made to files, with file tools or with commands that were tried."""
    if (call_id is not None) + (session is not None) + last != 1:
        raise click.UsageError("name a CALL, a session with --session, or --last")
    return asyncio.run(_undo(current(), call_id, session, last=last, force=force))


async def _undo(options: Options, call_id: str | None, session: str | None, *, last: bool, force: bool) -> int:
    from toolreeve.approval.channels.callback import CallbackChannel
    from toolreeve.cli.runtime import new_runtime, no_servers

    typed = CallbackChannel(lambda request: request.allow(by="the command line"), name="command line")
    async with new_runtime(options, typed, servers=no_servers) as runtime:
        if call_id is not None and (known := await runtime.audit.show(call_id)):
            call_id = known[0].call_id
        result = await runtime.undo(call_id, session=session, last=last, force=force)
    return show_result(options, result)
