"""Limits of a tool: retry, breaker, cache, rate and concurrency settings."""

from dataclasses import dataclass
from typing import Literal

from toolreeve.core.errors import ToolreeveError


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Repeat after a retryable failure. `attempts` counts the first one."""

    attempts: int = 3
    backoff: Literal["fixed", "linear", "exponential"] = "exponential"
    backoff_multiplier: float = 2.0
    initial_delay: float = 0.5
    max_delay: float = 30.0
    jitter: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """Refuse calls of a tool that failed `failure_threshold` times within `monitoring_period` seconds."""

    failure_threshold: int = 5
    recovery_timeout: float = 60.0
    monitoring_period: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """Cache successes for `ttl` seconds, per principal. `key_template` names the arguments that matter."""

    enabled: bool = True
    ttl: float = 300.0
    max_size: int = 1000
    key_template: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """At most `calls` in any window of `per` seconds."""

    calls: int
    per: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """`timeout` and the rest; None means the runtime's default, or no limit of that kind."""

    timeout: float | None = None
    retry: Retry | None = None
    circuit_breaker: CircuitBreaker | None = None
    caching: Caching | None = None
    rate: RateLimit | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ToolreeveError(f"{name}={value!r:.100}: use {kind.__name__}(…)")
        for name, least in (("timeout", 0), ("concurrency", 1)):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float) or value < least or value != value):
                raise ToolreeveError(f"{name}={value!r:.100}: use a number of at least {least}")


_KINDS = {"retry": Retry, "circuit_breaker": CircuitBreaker, "caching": Caching, "rate": RateLimit}

UNLIMITED = Limits()
