"""What the clients of the providers share: bodies, bounded responses, errors.

A response is bounded in bytes, so that a server that never ends its reply cannot fill the memory. Compression is not
accepted: a small body could unfold without bound.
"""

import contextlib
import functools
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx2

from toolreeve.agent.errors import ModelError, ModelErrorKind, from_status

MAX_REPLY = 32 << 20
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, IndexError)
"""What reading a response raises that is not in the provider's format."""


_ssl_context = functools.cache(httpx2.create_ssl_context)
"""Reading the certificates takes 20 ms: once is enough."""


def new_http_client(**options: Any) -> httpx2.AsyncClient:
    """Follows no redirects: the key would go along to another server."""
    return httpx2.AsyncClient(
        headers={"accept-encoding": "identity", **options.pop("headers", {})},
        event_hooks={"response": [_bound]},
        verify=_ssl_context(),
        **options,
    )


async def _bound(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ModelError(ModelErrorKind.REJECTED, "the response is compressed, which was not asked for")
    response.stream = _BoundedStream(response.stream)


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_REPLY
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise ModelError(ModelErrorKind.REJECTED, f"the response is larger than {MAX_REPLY >> 20} MB")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def untyped(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The body with these lists sent as they are. The SDKs rebuild every nested value of their typed arguments, which
    takes many milliseconds of CPU for a turn in a long conversation."""
    given = {name: body[name] for name in names if name in body}
    return {**body, **{name: [] for name in given}, "extra_body": given}


@contextlib.contextmanager
def translated(provider: str, sdk: Any = None) -> Iterator[None]:
    """`sdk` is the module that defines the exceptions of the provider's SDK, if it has one."""
    try:
        yield
    except ModelError:
        raise
    except httpx2.TimeoutException as problem:
        raise ModelError(ModelErrorKind.UNAVAILABLE, f"{provider} did not answer in time") from problem
    except httpx2.HTTPError as problem:  # while a stream is read
        raise broke_off(provider, problem) from problem
    except UNREADABLE as problem:
        raise broke_off(provider, f"it is not in the provider's format ({type(problem).__name__})") from problem
    except Exception as problem:
        if sdk is None or not isinstance(problem, sdk.APIError):
            raise
        raise _from_sdk(provider, problem, sdk) from problem


def _from_sdk(provider: str, problem: Any, sdk: Any) -> ModelError:
    if isinstance(problem, sdk.APIStatusError):
        return from_status(provider, problem.status_code, problem.body, problem.response.headers)
    if isinstance(problem, sdk.APITimeoutError):
        return ModelError(ModelErrorKind.UNAVAILABLE, f"{provider} did not answer in time")
    if isinstance(problem, sdk.APIConnectionError):
        cause = problem.__cause__ or problem
        if isinstance(cause, ModelError):
            return cause
        return ModelError(ModelErrorKind.UNAVAILABLE, f"{provider}: connection failed: {cause}")
    return ModelError(ModelErrorKind.UNAVAILABLE, f"{provider}: {problem.message}")  # an error event inside a stream


def broke_off(provider: str, why: Exception | str = "no end was sent") -> ModelError:
    return ModelError(ModelErrorKind.UNAVAILABLE, f"{provider}: the response broke off: {why}")


def refused(provider: str, why: str) -> ModelError:
    return ModelError(ModelErrorKind.REJECTED, f"{provider}: the model refused to answer: {why or 'no reason given'}")
