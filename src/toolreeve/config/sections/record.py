"""The [record] table: what is redacted, and where traces go."""

from dataclasses import dataclass
from typing import Annotated

from toolreeve.config.field import Field, ProjectScope


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is recorded."""

    redact_env: Annotated[
        tuple[str, ...],
        Field(
            "Environment variables whose values are redacted, in addition to those with telling names "
            "(*_TOKEN, *_KEY, *_SECRET, *_PASSWORD…). The lists of all sources add up.",
            ProjectScope.ADD,
        ),
    ] = ()
    otlp_endpoint: Annotated[
        str,
        Field(
            "Where OpenTelemetry traces go: the base URL of an OTLP/HTTP receiver, such as http://127.0.0.1:4318; "
            "empty for $OTEL_EXPORTER_OTLP_ENDPOINT, or nowhere. Needs the extra `otel`.",
            ProjectScope.NEVER,
        ),
    ] = ""
