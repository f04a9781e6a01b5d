"""`toolreeve call`: one tool; its result becomes the exit code.

Only the data goes to stdout; a failure goes to stderr with its suggestions. There is no flag that approves everything:
that is `--mode bypass`.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import click

from toolreeve.cli.arguments import BadArgument, parse_object, parse_pairs, read_stdin, read_text
from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import note
from toolreeve.cli.result import show_result
from toolreeve.cli.suggestions import complete_arguments, complete_tools

if TYPE_CHECKING:
    from toolreeve.core.call import ToolCall
    from toolreeve.runtime.toolreeve import Toolreeve

NO_ARGUMENTS = "\0"
ROLES = ("viewer", "operator", "admin")
TERMINATED = 143
SHOWN_INPUT = 1000


class CallCommand(CliCommand):
    own_json = True


@click.command(cls=CallCommand)
@click.argument("tool", shell_complete=complete_tools)
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...", shell_complete=complete_arguments)
@click.option(
    "--json",
    "document",
    is_flag=False,
    flag_value=NO_ARGUMENTS,
    metavar="[OBJECT | -]",
    help="Print JSON; with OBJECT, or - for stdin, also read the arguments from it.",
)
@click.option("--args", "arguments", metavar="OBJECT | -", help="Arguments as JSON, with plain output.")
@click.option("--session", help="The session of the call; a new one by default.")
@click.option("--say", metavar="TEXT", help="What you ask for, in your own words: it vouches for what it names.")
@click.option("--role", type=click.Choice(ROLES), help="The role of the caller; operator by default.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Timeout of the call in seconds.")
def call(
    tool: str,
    pairs: tuple[str, ...],
    document: str | None,
    arguments: str | None,
    session: str | None,
    say: str | None,
    role: str | None,
    timeout: float | None,
) -> int:
    """Call a tool.

    \b
    KEY=text     converted to the type of KEY in the tool's schema; repeat for lists
    KEY:=json    JSON, regardless of the schema
    KEY=@file    the text of a file; @- is stdin
    """
    options = current()
    if document is not None:
        options.json = True
    if say is not None and not sys.stdin.isatty():
        raise click.UsageError("--say needs a terminal: only a person's own words vouch, not those of a program")
    pairs, document = _choose_arguments(pairs, document, arguments)
    calling = _call(options, tool, pairs, document, session=session, say=say, role=role, timeout=timeout)
    try:
        return asyncio.run(calling)
    except asyncio.CancelledError:
        note("terminated by SIGTERM")
        return TERMINATED


def _choose_arguments(
    pairs: tuple[str, ...], document: str | None, arguments: str | None
) -> tuple[tuple[str, ...], str | None]:
    """The pairs and the JSON document of a call. A pair that follows `--json` is parsed as the option's value."""
    if document is not None and document not in (NO_ARGUMENTS, "-") and not document.lstrip().startswith(("{", "[")):
        pairs = (document, *pairs)
        document = NO_ARGUMENTS
    documents = [text for text in (document, arguments) if text not in (None, NO_ARGUMENTS)]
    if len(documents) + bool(pairs) > 1:
        raise click.UsageError("pass the arguments once: as KEY=VALUE, or as one JSON object")
    return pairs, documents[0] if documents else None


async def _call(
    options: Options,
    tool: str,
    pairs: tuple[str, ...],
    document: str | None,
    *,
    session: str | None,
    say: str | None,
    role: str | None,
    timeout: float | None,
) -> int:
    from toolreeve.cli.live_output import LiveOutput, QuietChannel, shows_live_output
    from toolreeve.cli.runtime import new_runtime, servers_with
    from toolreeve.core.call import Principal, RecordScope, Role, ToolCall
    from toolreeve.core.result import Failed

    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    from toolreeve.runtime.channels import new_terminal_channel

    terminal = new_terminal_channel(os.environ, session=False)  # the session ends with this process
    shows = shows_live_output() and terminal.available() and not options.json
    live = LiveOutput(session or "") if shows else None
    channel = terminal if live is None else QuietChannel(terminal, live)
    runtime = new_runtime(options, channel, servers=servers_with(tool))
    parsed = _arguments(runtime, tool, pairs, document) if tool in runtime.tools else None
    async with runtime:
        if parsed is None:
            await runtime.fleet.settled(timeout)
            parsed = _arguments(runtime, tool, pairs, document)
        args, problem = parsed
        if say is not None:
            await runtime.say(say, session=session)
        request = ToolCall(
            tool=tool,
            args=args,
            session=session or runtime.session,
            principal=Principal(user=runtime.principal.user, role=Role(role)) if role else runtime.principal,
            origin=runtime.origin,
            record_scope=RecordScope.USER,
            timeout=timeout,
            peer=live,
        )
        try:
            result = await runtime.run(request)
        except asyncio.CancelledError:
            if live is not None:
                live.close()
            note(await _describe_stop(runtime, request))
            raise
        finally:
            if live is not None:
                live.close()
    if problem and isinstance(result, Failed):
        result.outcome = replace(result.outcome, message=problem)
    status = show_result(options, result)
    is_kept = (result.meta.trial or {}).get("outcome") == "kept" or (result.data or {}).get("undoable")
    if result.success and is_kept and sys.stderr.isatty():
        note(f"to undo it: toolreeve undo {request.id}")
    return status


async def _describe_stop(runtime: "Toolreeve", call: "ToolCall") -> str:
    """What became of a call that the user stopped. The intent of one that may change something is recorded first."""
    begun = any(record.kind == "intent" for record in await runtime.audit.show(call.id))
    what = (
        "had begun and was stopped; what it did until then remains"
        if begun
        else "was stopped before it changed anything"
    )
    return f"{call.tool} {what} (`toolreeve audit show {call.id}`)"


def _arguments(
    runtime: "Toolreeve", tool: str, pairs: tuple[str, ...], document: str | None
) -> tuple[Mapping[str, Any], str]:
    """The arguments, and what is wrong with a document that is no JSON object."""
    if document is not None:
        return _from_document(document)
    known = runtime.tools.get(tool)
    try:
        return parse_pairs(pairs, known.spec.input if known else {}, read_text), ""
    except BadArgument as problem:
        raise click.UsageError(str(problem)) from None


def _from_document(document: str) -> tuple[Mapping[str, Any], str]:
    """Invalid JSON takes the road as plain text, so that the refusal is recorded like any other."""
    try:
        text: str | bytes = read_stdin() if document == "-" else document
    except BadArgument as problem:
        raise click.UsageError(str(problem)) from None
    try:
        return parse_object(text), ""
    except BadArgument as problem:
        unread = text[:SHOWN_INPUT]
        shown = unread.decode(errors="replace") if isinstance(unread, bytes) else unread
        return cast(Mapping[str, Any], shown), str(problem)
