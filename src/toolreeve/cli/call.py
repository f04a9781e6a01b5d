"""How is one tool called from a shell? Words become arguments, the road carries the call, the result becomes a status.

The data goes to stdout and nothing else does; a failure goes to stderr with its suggestions. There is no flag that
says yes to everything: whoever wants that writes `--mode bypass`.
"""

import asyncio
import signal
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from toolreeve.cli.arguments import BadArgument, parse_object, parse_pairs, read_stdin, read_text
from toolreeve.cli.options import CliCommand, Options, current
from toolreeve.cli.output import note
from toolreeve.cli.result import show_result

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

NO_ARGUMENTS = "\0"
TERMINATED = 143
SHOWN_INPUT = 1000


class CallCommand(CliCommand):
    own_json = True


@click.command(cls=CallCommand)
@click.argument("tool")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--json",
    "document",
    is_flag=False,
    flag_value=NO_ARGUMENTS,
    metavar="[OBJECT | -]",
    help="Answer in JSON; with a JSON object, or - for stdin, take the arguments from it.",
)
@click.option("--args", "arguments", metavar="OBJECT | -", help="The arguments as JSON, without the JSON answer.")
@click.option("--session", help="The session that the call belongs to; a new one if not named.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds that the call may take.")
def call(
    tool: str,
    pairs: tuple[str, ...],
    document: str | None,
    arguments: str | None,
    session: str | None,
    timeout: float | None,
) -> int:
    """Call a tool.

    \b
    KEY=text     read by the type that the tool's schema gives KEY; repeat it for lists
    KEY:=json    JSON, whatever the schema says
    KEY=@file    the text of a file; @- is stdin
    """
    invocation = current()
    pairs, given = _sort_out(pairs, document, arguments)
    invocation.json = invocation.json or document is not None
    try:
        return asyncio.run(_call(invocation, tool, pairs, given, session=session, timeout=timeout))
    except asyncio.CancelledError:
        note("ended by SIGTERM; the call is recorded as E_CANCELLED")
        return TERMINATED


def _sort_out(
    pairs: tuple[str, ...], document: str | None, arguments: str | None
) -> tuple[tuple[str, ...], str | None]:
    """`--json` may stand before a pair, which the option parser then takes for its value."""
    if document is not None and document not in (NO_ARGUMENTS, "-") and not document.lstrip().startswith(("{", "[")):
        pairs, document = (document, *pairs), NO_ARGUMENTS
    given = [text for text in (document, arguments) if text not in (None, NO_ARGUMENTS)]
    if len(given) + bool(pairs) > 1:
        raise click.UsageError("give the arguments once: as KEY=VALUE, or as one JSON object")
    return pairs, given[0] if given else None


async def _call(
    invocation: Options,
    tool: str,
    pairs: tuple[str, ...],
    document: str | None,
    *,
    session: str | None,
    timeout: float | None,
) -> int:
    from toolreeve.cli.runtime import new_runtime, servers_of
    from toolreeve.core.call import ToolCall

    if (task := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    runtime = new_runtime(invocation, servers=servers_of(tool))
    args = _arguments(runtime, tool, pairs, document) if tool in runtime.tools else None
    async with runtime:
        if args is None:
            await runtime.fleet.settled(timeout)
            args = _arguments(runtime, tool, pairs, document)
        request = ToolCall(
            tool=tool,
            args=args,
            session=session or runtime.session,
            principal=runtime.principal,
            origin=runtime.origin,
            timeout=timeout,
        )
        result = await runtime.run(request)
    status = show_result(invocation, result)
    if result.success and (result.data or {}).get("undoable") and sys.stderr.isatty():
        note(f"to take it back: toolreeve undo {request.id}")
    return status


def _arguments(runtime: "Toolreeve", tool: str, pairs: tuple[str, ...], document: str | None) -> Mapping[str, Any]:
    if document is not None:
        return _from_document(document)
    known = runtime.tools.get(tool)
    try:
        return parse_pairs(pairs, known.spec.input if known else {}, read_text)
    except BadArgument as problem:
        raise click.UsageError(str(problem)) from None


def _from_document(document: str) -> Mapping[str, Any]:
    """What is no JSON object takes the road as the text it is, so that the refusal is on record like any other."""
    try:
        text: str | bytes = read_stdin() if document == "-" else document
    except BadArgument as problem:
        raise click.UsageError(str(problem)) from None
    try:
        return parse_object(text)
    except BadArgument as problem:
        note(str(problem))
        unread = text[:SHOWN_INPUT]
        return cast(Mapping[str, Any], unread.decode(errors="replace") if isinstance(unread, bytes) else unread)
