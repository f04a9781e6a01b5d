"""OpenTelemetry traces: one `execute_tool` span per call, by the GenAI conventions.

Nothing is loaded or sent unless an endpoint is configured. Spans hold no arguments and no results.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from toolreeve.core.entry import Entry
from toolreeve.core.errors import ConfigError
from toolreeve.core.result import UNDECIDED, Failure

logger = logging.getLogger(__name__)

TRACES = "/v1/traces"
VARIABLE = "OTEL_EXPORTER_OTLP_ENDPOINT"
MISSING = "pip install 'toolreeve[otel]'"


class CallTracer:
    """Sends spans in the background, in batches. Raises ConfigError if the extra is not installed."""

    def __init__(self, endpoint: str, *, version: str) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
        except ImportError:
            problem = "traces need OpenTelemetry, which is not installed"
            raise ConfigError(problem, source="record.otlp_endpoint", fix=MISSING) from None
        resource = Resource.create({"service.name": "toolreeve", "service.version": version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=endpoint.rstrip("/").removesuffix(TRACES) + TRACES)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("toolreeve", version)
        self._propagator = TraceContextTextMapPropagator()
        self._trace = trace

    def record(self, entry: Entry) -> None:
        """A call has ended. Its parent is the caller's `traceparent`, if there is one."""
        start = int(entry.at * 1e9)
        parent = self._propagator.extract({"traceparent": entry.call.traceparent}) if entry.call.traceparent else None
        span = self._tracer.start_span(
            f"execute_tool {entry.meta.tool}", context=parent, start_time=start, attributes=_attributes(entry)
        )
        if isinstance(entry.outcome, Failure):
            span.set_attribute("error.type", str(entry.outcome.code))
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, str(entry.outcome.code)))
        span.end(end_time=start + int((entry.meta.duration_ms + entry.meta.waited_ms) * 1e6))

    async def close(self) -> None:
        """Send what is left."""
        await asyncio.to_thread(self._provider.shutdown)


def new_tracer(configured: str, environ: Mapping[str, str], *, version: str) -> CallTracer | None:
    """For the configured endpoint, or that of OpenTelemetry's own variable; None without either. A variable that is
    set for other programs stops nothing here if the extra is missing. Raises ConfigError for a configured one."""
    if configured:
        return CallTracer(configured, version=version)
    if not (endpoint := environ.get(VARIABLE, "")):
        return None
    try:
        return CallTracer(endpoint, version=version)
    except ConfigError:
        logger.warning("%s is set, but traces are not sent: %s", VARIABLE, MISSING)
        return None


def _attributes(entry: Entry) -> dict[str, Any]:
    meta = entry.meta
    found: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": meta.tool,
        "gen_ai.tool.call.id": meta.call_id,
        "gen_ai.tool.type": "function",
        "toolreeve.session": meta.session,
        "toolreeve.origin": entry.call.origin,
        "toolreeve.waited_ms": meta.waited_ms,
        "toolreeve.cached": meta.cached,
    }
    if meta.verdict is not UNDECIDED:
        found["toolreeve.decision"] = meta.verdict.decision.word
    return found
