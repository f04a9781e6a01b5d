"""`toolreeve workers`: lists workers, makes pool keys and the NATS configuration."""

import asyncio

import click

from toolreeve.cli.options import CliGroup, current
from toolreeve.cli.output import count, note, print_json, print_table, print_text
from toolreeve.cli.record import format_time
from toolreeve.core.errors import ExitStatus

COLUMNS = ("pool", "worker", "state", "running", "version", "since")


@click.group(cls=CliGroup, invoke_without_command=True)
@click.pass_context
def workers(context: click.Context) -> int:
    """List the workers; make pool keys and the configuration of NATS."""
    return ExitStatus.OK if context.invoked_subcommand else _list()


@workers.command("list")
def list_() -> int:
    """List the workers that serve the configured pools."""
    return _list()


def _list() -> int:
    from toolreeve.runtime.remote import find_fleet

    configuration = current().configuration()
    found = asyncio.run(find_fleet(configuration))
    if current().json:
        print_json(found)
        return ExitStatus.OK
    rows = [
        (
            each["pool"],
            each["name"],
            each["state"],
            f"{each['running']}/{each['capacity']}",
            each["version"],
            format_time(each["since"]),
        )
        for each in found["workers"]
    ]
    if rows:
        print_table(current(), COLUMNS, rows)
    for pool, waiting in found["waiting"].items():
        if not any(each["pool"] == pool for each in found["workers"]):
            note(f"pool {pool!r} has no worker: start one with `toolreeve worker --pool {pool}`")
        if waiting:
            note(f"pool {pool!r}: {count(waiting, 'call')} waiting")
    return ExitStatus.OK


@workers.command()
@click.option("--kind", type=click.Choice(["hmac", "ed25519"]), default="ed25519", show_default=True)
def key(kind: str) -> int:
    """Make the key of a pool.

    With ed25519 the workers get the public half and can verify calls, not make them; hmac costs a tenth of the time.
    """
    from toolreeve.execution.workers.signing import new_key

    gateway, worker = new_key(kind)
    if current().json:
        print_json({"gateway": gateway, "worker": worker})
        return ExitStatus.OK
    print_text(f"gateway: {gateway}\nworker:  {worker}")
    note("keep each with `toolreeve secrets set NAME` on its machines; workers.pools.POOL.key refers to it")
    return ExitStatus.OK


@workers.command("nats-config")
@click.option("--tls", is_flag=True, help="With a certificate: server.pem and server-key.pem.")
def nats_config(*, tls: bool) -> int:
    """Print a configuration of nats-server with a user for gateways and one for each configured pool.

    A worker's user can take and answer the calls of its pool, and nothing else.
    """
    from toolreeve.execution.workers.nats_config import GATEWAY, password_variable, user_of, write_config

    pools = list(current().configuration().settings.workers.pools)
    if not pools:
        raise click.UsageError("no pools are configured: see workers.pools")
    print_text(write_config(pools, tls=tls).rstrip())
    for user in (GATEWAY, *map(user_of, pools)):
        note(f"{password_variable(user)}: the password of {user!r} (workers.user, workers.password)")
    return ExitStatus.OK
