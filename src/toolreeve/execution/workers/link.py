"""Connection to NATS: settings, errors that name the setting, streams.

The streams hold work, never truth: what was decided and what came of it is in the record of the gateway.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.execution.workers.wire import DELIVERIES, REGISTRY, call_subject, stream_of

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

MISSING = "workers need the package nats-py: pip install 'toolreeve[workers]'"
CONNECT_SECONDS = 5.0
RECONNECT_SECONDS = 0.2
DAY = 86_400.0
DUPLICATE_SECONDS = 120.0
PENDING_BYTES = 64 * 1024 * 1024
"""What a worker may send while it is disconnected: results wait for the reconnect."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NatsSettings:
    """`workers` of the configuration, with its secrets."""

    urls: tuple[str, ...]
    user: str = ""
    password: str = ""
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    replicas: int = 1
    ack_wait: float = 10.0
    queue_timeout: float = 60.0
    queue_limit: int = 10_000

    @property
    def place(self) -> str:
        """For messages: without credentials."""
        return ", ".join(url.rpartition("@")[2] if "@" in url else url for url in self.urls)


class NatsLink:
    """One connection. `problem` is what the server or the connection last complained of.

    Raises ToolreeveError without the extra, or for TLS files that cannot be read.
    """

    def __init__(self, settings: NatsSettings, *, name: str, inbox: str = "_INBOX") -> None:
        if find_spec("nats") is None:
            raise ToolreeveError(MISSING)
        self.settings = settings
        self._tls = _new_tls(settings)
        self.problem = ""
        self.on_reconnect: Callable[[], Awaitable[None]] | None = None
        self._name = name
        self._inbox = inbox
        self.client: Client
        self.jetstream: JetStreamContext

    async def connect(self) -> None:
        """Raises ToolError(WORKER_UNAVAILABLE) that says what is wrong."""
        import nats

        self.problem = ""
        settings = self.settings
        options: dict[str, Any] = {"user": settings.user, "password": settings.password} if settings.user else {}
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                self.client = await nats.connect(
                    list(settings.urls),
                    name=self._name,
                    inbox_prefix=self._inbox,
                    tls=self._tls,
                    error_cb=self._complain,
                    reconnected_cb=self._again,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_SECONDS,
                    connect_timeout=2,
                    ping_interval=10,
                    pending_size=PENDING_BYTES,
                    **options,
                )
        except (OSError, nats.errors.Error, ValueError) as problem:
            raise self.unavailable(self.problem or str(problem) or "no answer") from None
        self.jetstream = self.client.jetstream(timeout=CONNECT_SECONDS)

    async def close(self) -> None:
        client = getattr(self, "client", None)
        if client is not None and not client.is_closed:
            with contextlib.suppress(Exception):  # a server that is gone takes nothing more
                await client.flush(timeout=2)
            await client.close()

    async def _complain(self, problem: Exception) -> None:
        """nats-py reports every lost connection and every refused subject here, and goes on by itself. What the server
        said is worth more than that it hung up."""
        if not (self.problem and isinstance(problem, OSError)):
            self.problem = str(problem) or type(problem).__name__

    async def _again(self) -> None:
        if self.on_reconnect is not None:
            await self.on_reconnect()

    def unavailable(self, why: str) -> ToolError:
        message = f"NATS at {self.settings.place} (workers.url): {why}"
        return ToolError(ErrorCode.WORKER_UNAVAILABLE, message)

    async def ask(self, request: Awaitable[Any]) -> Any:
        """The answer of JetStream's API. Raises ToolError(WORKER_UNAVAILABLE) that says why there is none."""
        from nats.errors import Error

        self.problem = ""
        try:
            return await request
        except (TimeoutError, Error) as problem:
            raise self._explain(problem) from None

    def _explain(self, problem: Exception) -> ToolError:
        from nats.errors import NoRespondersError
        from nats.js.errors import APIError, NoStreamResponseError, ServiceUnavailableError

        if isinstance(problem, ServiceUnavailableError | NoStreamResponseError | NoRespondersError):
            return self.unavailable("JetStream does not answer; start nats-server with -js")
        if isinstance(problem, APIError):
            return self.unavailable(f"JetStream refused: {problem.description} ({problem.err_code})")
        said = self.problem or str(problem)
        hint = "; `toolreeve workers nats-config` prints the permissions" if "ermission" in said else ""
        return self.unavailable(f"{said}{hint}")

    async def prepare(self, pools: Iterable[str]) -> None:
        """Create or update the streams, the consumers of the pools and the registry. Only gateways may."""
        from nats.js.api import AckPolicy, ConsumerConfig, KeyValueConfig

        settings = self.settings
        for kind, deliveries in DELIVERIES.items():
            for pool in pools:
                stream = stream_of(kind, pool)
                await self._add_stream(stream, call_subject(kind, pool))
                consumer = ConsumerConfig(
                    durable_name=pool,
                    filter_subject=call_subject(kind, pool),
                    ack_policy=AckPolicy.EXPLICIT,
                    ack_wait=settings.ack_wait,
                    max_deliver=deliveries,
                    max_ack_pending=settings.queue_limit,
                )
                await self.ask(self.jetstream.add_consumer(stream, consumer))
        lifetime = registry_seconds(settings.ack_wait)
        registry = KeyValueConfig(bucket=REGISTRY, ttl=lifetime, replicas=settings.replicas)
        await self.ask(self.jetstream.create_key_value(registry))

    async def _add_stream(self, name: str, subject: str) -> None:
        from nats.errors import Error
        from nats.js.api import DiscardPolicy, RetentionPolicy, StreamConfig
        from nats.js.errors import BadRequestError

        settings = self.settings
        config = StreamConfig(
            name=name,
            subjects=[subject],
            retention=RetentionPolicy.WORK_QUEUE,
            discard=DiscardPolicy.NEW,
            max_msgs=settings.queue_limit,
            max_age=DAY,
            duplicate_window=DUPLICATE_SECONDS,
            num_replicas=settings.replicas,
        )
        try:
            await self.jetstream.add_stream(config)
        except BadRequestError:  # it exists with other settings
            await self.ask(self.jetstream.update_stream(config))
        except (TimeoutError, Error) as problem:
            raise self._explain(problem) from None


def registry_seconds(ack_wait: float) -> float:
    """How long a worker that says nothing stays listed."""
    return max(3.0, 1.5 * ack_wait)


def _new_tls(settings: NatsSettings) -> ssl.SSLContext | None:
    if not (settings.tls_ca or settings.tls_cert):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.tls_ca)
        if settings.tls_cert:
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
    except OSError as problem:
        files = ", ".join(filter(None, (settings.tls_ca, settings.tls_cert, settings.tls_key)))
        raise ToolreeveError(f"workers.tls: {files}: {problem}") from None
    return context
