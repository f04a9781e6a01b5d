"""The [a2a] table: limits of the agents that call over A2A."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class A2a:
    """Limits of the agents that call over A2A."""

    requests_per_minute: Annotated[
        int,
        Field(
            "Requests of one user per minute; the response headers X-RateLimit-* tell what is left. 0: no limit.",
            ProjectScope.NEVER,
            at_least=0,
        ),
    ] = 1200
    requests_per_hour: Annotated[
        int,
        Field(
            "Requests of one user per hour; the response headers X-RateLimit-*-Hour tell what is left. 0: no limit.",
            ProjectScope.NEVER,
            at_least=0,
        ),
    ] = 36_000
    tasks_per_user: Annotated[
        int,
        Field("Tasks of one user that run at the same time.", ProjectScope.NEVER, at_least=1),
    ] = 64
    waiting_tasks_per_user: Annotated[
        int,
        Field("Tasks of one user that wait for an answer at the same time.", ProjectScope.NEVER, at_least=1),
    ] = 1000
    grpc_port: Annotated[
        int,
        Field(
            "The port of A2A over gRPC, which needs a token and the extra `grpc`. 0: none.",
            ProjectScope.NEVER,
            at_least=0,
            shape={"type": "integer", "maximum": 65_535},
        ),
    ] = 0
    grpc_connections: Annotated[
        int,
        Field("Connections over gRPC at the same time, with or without a token.", ProjectScope.NEVER, at_least=1),
    ] = 128
    grpc_certificate: Annotated[
        str | None,
        Field(
            "The certificate chain of the gRPC port, a PEM file; with it, TLS is required there. Empty: no TLS.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = None
    grpc_key: Annotated[
        str | None,
        Field("The private key of that certificate, a PEM file.", ProjectScope.NEVER, paths=True),
    ] = None
    card_key: Annotated[
        str | None,
        Field(
            "The private key that signs the agent card, a PEM file: RSA or an elliptic curve. Empty: it is not signed.",
            ProjectScope.NEVER,
            paths=True,
        ),
    ] = None
    max_file_bytes: Annotated[
        int,
        Field("Bytes of all files of one message together.", ProjectScope.NEVER, at_least=0),
    ] = 2 * 1024 * 1024
