"""The [workers] table: calls that run on other machines, through NATS."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from toolreeve.config.field import Field, ProjectScope
from toolreeve.config.table_schemas import POOLS, REFERENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Which tools run on workers, and how they are reached. Needs the extra `workers`."""

    url: Annotated[
        str,
        Field(
            "The NATS servers, such as nats://127.0.0.1:4222; several, separated by commas, for a cluster. Empty: "
            "every call runs in this process.",
            ProjectScope.NEVER,
            shape={"type": "string", "pattern": r"^$|^(nats|tls|ws|wss)://[^\s,]+(,\s*(nats|tls|ws|wss)://[^\s,]+)*$"},
        ),
    ] = ""
    user: Annotated[str, Field("The user at NATS.", ProjectScope.NEVER)] = ""
    password: Annotated[
        str,
        Field(
            "The password at NATS: a reference, ${secret:NAME}.",
            ProjectScope.NEVER,
            shape={"type": "string", "anyOf": [{"maxLength": 0}, {"pattern": REFERENCE}]},
        ),
    ] = ""
    tls_ca: Annotated[
        str | None, Field("The certificate authority of the NATS servers, a PEM file.", ProjectScope.NEVER, paths=True)
    ] = None
    tls_cert: Annotated[
        str | None, Field("The certificate to present to NATS, a PEM file.", ProjectScope.NEVER, paths=True)
    ] = None
    tls_key: Annotated[str | None, Field("The key of `tls_cert`, a PEM file.", ProjectScope.NEVER, paths=True)] = None
    pools: Annotated[
        Mapping[str, Any],
        Field(
            "Pools of workers by name: which tools run there, and the key that signs their calls.",
            ProjectScope.NEVER,
            shape=POOLS,
        ),
    ] = field(default_factory=dict)
    limits: Annotated[
        Literal["local", "shared"],
        Field(
            "Where rates, concurrency, breakers and caches of tools count: `local` for each gateway, `shared` for all "
            "gateways of the same NATS.",
            ProjectScope.NEVER,
        ),
    ] = "local"
    ack_wait: Annotated[
        float,
        Field(
            "Seconds without a heartbeat after which a worker is gone; its calls end with E_WORKER_LOST.",
            ProjectScope.NEVER,
            at_least=1,
        ),
    ] = 10.0
    queue_timeout: Annotated[
        float,
        Field("Seconds that a call waits for a worker to begin it.", ProjectScope.NEVER, at_least=1),
    ] = 60.0
    queue_limit: Annotated[
        int,
        Field("Calls that may wait in a pool; further ones are refused.", ProjectScope.NEVER, at_least=1),
    ] = 10_000
    replicas: Annotated[
        int,
        Field(
            "How many NATS servers keep the queue: 3 in a cluster of three.",
            ProjectScope.NEVER,
            at_least=1,
            shape={"type": "integer", "enum": [1, 3, 5]},
        ),
    ] = 1
