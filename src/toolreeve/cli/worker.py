"""`toolreeve worker`: runs the calls of a pool until stopped."""

import asyncio
import signal

import click

from toolreeve.cli.options import CliCommand, current
from toolreeve.cli.output import count, note
from toolreeve.core.errors import ExitStatus

CAPACITY = 16
DRAIN_SECONDS = 60.0


@click.command(cls=CliCommand)
@click.option("--pool", required=True, metavar="NAME", help="The pool to serve: a table of workers.pools.")
@click.option("--capacity", type=click.IntRange(1, 10_000), default=CAPACITY, show_default=True, help="Calls at once.")
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    default=DRAIN_SECONDS,
    show_default=True,
    help="Seconds that running calls have to end after SIGTERM.",
)
def worker(*, pool: str, capacity: int, drain: float) -> int:
    """Run the calls of a pool, signed by a gateway, with the tools and the sandbox of this machine.

    SIGTERM drains: no call is taken any more, and running ones end. A second one stops at once.
    """
    from toolreeve.runtime.build import check_workspace
    from toolreeve.serve.mcp.stdio import run

    check_workspace(current().configuration())
    left = 0

    async def serve() -> None:
        nonlocal left
        left = await _serve(pool, capacity, drain)

    run(serve())
    note(f"{count(left, 'call')} did not end within {drain:g} s (--drain)" if left else "drained: every call has ended")
    return ExitStatus.TIMEOUT if left else ExitStatus.OK


async def _serve(pool: str, capacity: int, drain: float) -> int:
    from toolreeve.runtime.remote import nats_settings
    from toolreeve.runtime.worker import run_worker

    configuration = current().configuration()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    main = asyncio.current_task()

    def end() -> None:
        if stop.is_set() and main is not None:
            main.cancel()
        stop.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, end)
    note(f"worker of pool {pool!r}, {count(capacity, 'call')} at once, NATS at {nats_settings(configuration).place}")
    try:
        return await run_worker(configuration, pool, capacity=capacity, drain_seconds=drain, stop=stop, tell=note)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
