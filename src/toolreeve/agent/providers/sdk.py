"""Translates the exceptions of the OpenAI and Anthropic SDKs."""

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx2

from toolreeve.agent.errors import ModelError, ModelErrorKind, from_status


@contextlib.contextmanager
def translated(provider: str, sdk: Any) -> Iterator[None]:
    """`sdk` is the module that defines the exceptions."""
    try:
        yield
    except sdk.APIStatusError as problem:
        raise from_status(provider, problem.status_code, problem.body, problem.response.headers) from problem
    except sdk.APITimeoutError as problem:
        raise ModelError(ModelErrorKind.UNAVAILABLE, f"{provider} did not answer in time") from problem
    except sdk.APIConnectionError as problem:
        cause = problem.__cause__ or problem
        raise ModelError(ModelErrorKind.UNAVAILABLE, f"{provider}: connection failed: {cause}") from problem
    except sdk.APIError as problem:  # an error event inside a stream
        raise ModelError(ModelErrorKind.UNAVAILABLE, f"{provider}: {problem.message}") from problem
    except httpx2.HTTPError as problem:  # while a stream is read
        raise broke_off(provider, problem) from problem


def broke_off(provider: str, why: Exception | str = "no end was sent") -> ModelError:
    return ModelError(ModelErrorKind.UNAVAILABLE, f"{provider}: the response broke off: {why}")
