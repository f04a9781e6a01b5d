"""NATS server configuration: one user for gateways, one for each pool.

A pool's user can take the calls of its pool and answer them. It cannot publish calls, take or acknowledge those of
another pool, answer for it, or read what the streams hold.
"""

import json
from collections.abc import Sequence

from toolreeve.execution.workers.wire import DELIVERIES, LIMITS, PREFIX, control_subject, registry_subject, stream_of

GATEWAY = "gateway"


def user_of(pool: str) -> str:
    return f"worker-{pool}"


def password_variable(user: str) -> str:
    return f"NATS_{user.upper().replace('-', '_')}_PASSWORD"


def worker_permissions(pool: str) -> tuple[list[str], list[str]]:
    """Subjects that a worker of the pool may publish to, and subscribe to."""
    streams = [stream_of(kind, pool) for kind in DELIVERIES]
    publish = [
        *(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{pool}" for stream in streams),
        *(f"$JS.ACK.{stream}.{pool}.>" for stream in streams),
        f"{PREFIX}.reply.{pool}.>",
        registry_subject(pool, "*"),
    ]
    return publish, [f"_INBOX_{pool}.>", control_subject(pool)]


def gateway_permissions(pools: Sequence[str]) -> tuple[list[str], list[str]]:
    publish = [f"{PREFIX}.call.>", f"{PREFIX}.control.>", "$JS.API.>", f"$KV.{LIMITS}.>"]
    publish += [f"_INBOX_{pool}.>" for pool in pools]
    return publish, ["_INBOX.>", f"{PREFIX}.reply.>", "$JS.EVENT.ADVISORY.CONSUMER.>"]


def write_config(pools: Sequence[str], *, tls: bool) -> str:
    """The passwords are variables of the server's environment: the file holds no secret."""
    users = [_user(GATEWAY, *gateway_permissions(pools))]
    users += [_user(user_of(pool), *worker_permissions(pool)) for pool in pools]
    secured = 'tls {\n  cert_file: "server.pem"\n  key_file: "server-key.pem"\n}\n' if tls else ""
    return (
        "# Made by `toolreeve workers nats-config`. Passwords come from the environment of nats-server: letters,\n"
        "# digits, `_` and `-`, beginning with a letter.\n"
        'jetstream { store_dir: "/data" }\n'
        f"{secured}"
        "authorization {\n  users = [\n" + "".join(users) + "  ]\n}\n"
    )


def _user(name: str, publish: Sequence[str], subscribe: Sequence[str]) -> str:
    return (
        "    {\n"
        f"      user: {json.dumps(name)}, password: ${password_variable(name)}\n"
        "      permissions: {\n"
        f"        publish: {json.dumps(publish)}\n"
        f"        subscribe: {json.dumps(subscribe)}\n"
        "      }\n"
        "    }\n"
    )
