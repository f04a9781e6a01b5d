"""Outstanding requests: ids, responses and timeouts.

A response settles its request once; a response to no outstanding request is ignored.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from toolreeve.rpc.messages import Message

_MAX_ID_DIGITS = 18


class OutstandingRequest:
    """`response` gets the message that answers the request, or TimeoutError."""

    __slots__ = ("_timer", "response")

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout: float | None) -> None:
        self.response: asyncio.Future[Message] = loop.create_future()
        self._timer = None if timeout is None else loop.call_later(timeout, self._expire)

    def fail(self, problem: Exception) -> None:
        if not self.response.done():
            self.response.set_exception(problem)
            self.response.exception()  # nobody may be waiting any more

    def _expire(self) -> None:
        self.fail(TimeoutError())

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


R = TypeVar("R", bound=OutstandingRequest)


class OutstandingRequests(Generic[R]):
    """The requests of one connection, numbered from 1."""

    def __init__(self) -> None:
        self._requests: dict[int, R] = {}
        self._last_id = 0

    def __iter__(self) -> Iterator[R]:
        """In the order in which they were added."""
        return iter(self._requests.values())

    def add(self, request: R) -> int:
        """The new request's id."""
        self._last_id += 1
        self._requests[self._last_id] = request
        return self._last_id

    def get(self, request_id: Any) -> R | None:
        """Only an exact integer is an id: `true` and `1.0` are not 1."""
        return self._requests.get(request_id) if type(request_id) is int else None

    def remove(self, request_id: int) -> None:
        request = self._requests.pop(request_id, None)
        if request is not None:
            request.close()

    def settle(self, message: Message) -> None:
        """Hand a response to its request. Some servers return the id as a string."""
        request_id = message.get("id")
        if type(request_id) is str and _is_number(request_id):
            request_id = int(request_id)
        request = self.get(request_id)
        if request is not None and not request.response.done():
            request.response.set_result(message)

    def fail_all(self, new_problem: Callable[[], Exception]) -> None:
        """Each request gets an exception of its own: they are raised in different tasks."""
        for request in list(self._requests.values()):
            request.fail(new_problem())


def _is_number(request_id: str) -> bool:
    return request_id.isascii() and request_id.isdigit() and len(request_id) <= _MAX_ID_DIGITS
