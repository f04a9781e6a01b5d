"""A2A over gRPC (extra `grpc`): same tasks, tokens and rates.

The SDK's handler ignores the version that a caller asks for: it is checked here. A token is always required: unlike
over HTTP, the user at the other end of a local connection is not known.
"""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from a2a.auth.user import UnauthenticatedUser
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.grpc_handler import GrpcHandler, GrpcServerCallContextBuilder
from a2a.types import a2a_pb2_grpc
from a2a.utils.errors import (
    A2A_ERROR_REASONS,
    A2AError,
    UnsupportedOperationError,
    VersionNotSupportedError,
)
from a2a.utils.grpc_status import status_to_grpc
from google.rpc import error_details_pb2, status_pb2

from toolreeve.config.sections.a2a import A2a
from toolreeve.core.errors import ConfigError
from toolreeve.serve.a2a.card import VERSION
from toolreeve.serve.a2a.handler import TaskHandler
from toolreeve.serve.a2a.rate import RequestRates
from toolreeve.serve.access import AccessControl
from toolreeve.serve.api.endpoint import MAX_BODY_BYTES
from toolreeve.serve.tokens import Credential

GRACE_SECONDS = 1.0
MAX_STREAMS = 100
"""Calls of one connection at the same time."""
IDLE_MS = 300_000
HANDSHAKE_MS = 10_000
NO_TOKEN = "a valid bearer token is required over gRPC: toolreeve tokens add NAME"  # noqa: S105 - a sentence
Details = Any
Refusal = tuple[grpc.StatusCode, str]


class _AccessInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpcio has no types
    def __init__(self, access: AccessControl, rates: RequestRates) -> None:
        self._access = access
        self._rates = rates

    async def intercept_service(self, continuation: Callable[[Details], Awaitable[Any]], details: Details) -> Any:
        refusal = self._check(_texts(details.invocation_metadata))
        if refusal is None:
            return await continuation(details)

        async def refuse(_: object, context: grpc.aio.ServicerContext) -> None:
            await context.abort(*refusal)

        return grpc.unary_unary_rpc_method_handler(refuse)

    def _check(self, metadata: Mapping[str, str]) -> Refusal | None:
        credential = find_credential(self._access, metadata)
        if credential is None:
            return grpc.StatusCode.UNAUTHENTICATED, NO_TOKEN
        _, refusal = self._rates.take(credential.principal.user)
        return (grpc.StatusCode.RESOURCE_EXHAUSTED, refusal) if refusal else None


class _GrpcContexts(GrpcServerCallContextBuilder):
    def __init__(self, access: AccessControl) -> None:
        self._access = access

    def build(self, context: grpc.aio.ServicerContext) -> ServerCallContext:
        """Raises VersionNotSupportedError."""
        metadata = _texts(context.invocation_metadata())
        asked = metadata.get("a2a-version", "")
        if asked != VERSION:
            raise VersionNotSupportedError(
                message=f"A2A version {asked!r:.40} is not supported over gRPC; use {VERSION}"
            )
        state = {
            "headers": metadata,
            "credential": find_credential(self._access, metadata),
            "base": "",
            "locked": True,
        }
        return ServerCallContext(user=UnauthenticatedUser(), state=state)


class _SpecifiedHandler(GrpcHandler):
    """Answers with the status of the specification where the SDK has another."""

    async def abort_context(self, error: A2AError, context: grpc.aio.ServicerContext) -> None:
        if not isinstance(error, VersionNotSupportedError | UnsupportedOperationError):
            await super().abort_context(error, context)
            return
        info = error_details_pb2.ErrorInfo(reason=A2A_ERROR_REASONS[type(error)], domain="a2a-protocol.org")
        status = status_pb2.Status(code=grpc.StatusCode.UNIMPLEMENTED.value[0], message=error.message)
        status.details.add().Pack(info)
        rich = status_to_grpc(status)
        context.set_trailing_metadata(tuple(rich.trailing_metadata))
        await context.abort(rich.code, rich.details)


def find_credential(access: AccessControl, metadata: Mapping[str, str]) -> Credential | None:
    return access.tokens.find(metadata.get("authorization", "").encode()) if access.tokens else None


def _texts(metadata: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in metadata or () if isinstance(value, str)}


def _read_credentials(settings: A2a) -> grpc.ServerCredentials | None:
    """Of TLS. Raises ConfigError if they cannot be used: tokens never go without it by mistake."""
    if settings.grpc_certificate is None and settings.grpc_key is None:
        return None
    fix = "name PEM files in a2a.grpc_certificate and a2a.grpc_key"
    if settings.grpc_certificate is None or settings.grpc_key is None:
        raise ConfigError("TLS needs both a certificate and a key", source="a2a.grpc_certificate", fix=fix)
    try:
        chain, key = Path(settings.grpc_certificate).read_bytes(), Path(settings.grpc_key).read_bytes()
        # gRPC would only log that they do not fit.
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            settings.grpc_certificate, settings.grpc_key
        )
    except OSError as problem:
        raise ConfigError(
            f"the certificate cannot be used: {problem}", source="a2a.grpc_certificate", fix=fix
        ) from None
    return grpc.ssl_server_credentials([(key, chain)])


@asynccontextmanager
async def serve_grpc(
    handler: TaskHandler, access: AccessControl, rates: RequestRates, settings: A2a, *, host: str
) -> AsyncIterator[None]:
    """What a connection may do before its token is known is bounded. Raises ConfigError."""
    options = [
        ("grpc.max_receive_message_length", MAX_BODY_BYTES),
        ("grpc.max_allowed_incoming_connections", settings.grpc_connections),
        ("grpc.max_concurrent_streams", MAX_STREAMS),
        ("grpc.max_connection_idle_ms", IDLE_MS),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
        ("grpc.so_reuseport", 0),
    ]
    most = settings.grpc_connections * MAX_STREAMS
    interceptors = [_AccessInterceptor(access, rates)]
    server = grpc.aio.server(interceptors=interceptors, options=options, maximum_concurrent_rpcs=most)
    add: Any = a2a_pb2_grpc.add_A2AServiceServicer_to_server
    add(_SpecifiedHandler(handler, _GrpcContexts(access)), server)
    port = settings.grpc_port
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    credentials = _read_credentials(settings)
    try:
        if credentials is None:
            server.add_insecure_port(place)
        else:
            server.add_secure_port(place, credentials)
    except RuntimeError:
        raise ConfigError(f"cannot listen on {place}", source="a2a.grpc_port", fix="choose another port") from None
    await server.start()
    try:
        yield
    finally:
        await server.stop(GRACE_SECONDS)
