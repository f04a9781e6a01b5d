"""`ControlProtocol`: requests to a person and their responses, matched by id.

It belongs to the event loop that started it; other threads may send through it. Whatever is not a clear answer is an
error, never a yes.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.agent.control.messages import ControlRequest, ControlResponse
from toolreeve.agent.control.transports.transport import ControlTransport

logger = logging.getLogger(__name__)


class ControlProtocol:
    """Asks a person over a transport. `await protocol.start()` connects it."""

    def __init__(self, transport: ControlTransport) -> None:
        if not isinstance(transport, ControlTransport):
            raise TypeError(f"transport={transport!r:.80} has no connect, write, read_messages, close and is_ready")
        self._transport = transport
        self._waiting: dict[str, asyncio.Future[ControlResponse]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = ""

    @property
    def is_started(self) -> bool:
        """Whether requests can be sent."""
        return self._loop is not None

    async def start(self, task_group: Any = None) -> None:
        """`task_group` is accepted for callers that pass one; the reader is owned here. Raises RuntimeError if
        started already, ConnectionError if the transport cannot connect."""
        del task_group
        if self._loop is not None:
            raise RuntimeError("the control protocol is started already")
        await self._transport.connect()
        self._ended = ""
        self._loop = asyncio.get_running_loop()
        self._reader = asyncio.create_task(self._read(), name="control-protocol")

    async def stop(self) -> None:
        """Cancel what is pending. May be called twice."""
        if self._loop is None:
            return
        self._loop = None
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        self._fail_all("the control protocol was stopped")
        await self._transport.close()

    async def send_request(self, request: ControlRequest, timeout: float | None = 60.0) -> ControlResponse:
        """Raises TimeoutError, ConnectionError, and RuntimeError if not started."""
        owner = self._loop
        if owner is None:
            raise RuntimeError("the control protocol is not started: await protocol.start()")
        if asyncio.get_running_loop() is owner:
            return await self._send(request, timeout)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._send(request, timeout), owner))

    async def _send(self, request: ControlRequest, timeout: float | None) -> ControlResponse:
        if self._ended:
            raise ConnectionError(self._ended)
        answer: asyncio.Future[ControlResponse] = asyncio.get_running_loop().create_future()
        self._waiting[request.request_id] = answer
        try:
            async with asyncio.timeout(timeout):
                await self._transport.write(request.to_json())
                return await answer
        finally:
            self._waiting.pop(request.request_id, None)

    async def notify(self, request: ControlRequest) -> None:
        """Send without waiting for a response."""
        owner = self._loop
        if owner is None:
            raise RuntimeError("the control protocol is not started: await protocol.start()")
        work = self._transport.write(request.to_json())
        if asyncio.get_running_loop() is owner:
            await work
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, owner))

    async def _read(self) -> None:
        try:
            async for text in self._transport.read_messages():
                self._receive(text)
            self._fail_all("the other side closed the connection")
        except Exception as problem:  # whatever a transport raises, nobody will answer any more
            self._fail_all(f"the connection failed: {problem}")

    def _receive(self, text: str) -> None:
        try:
            response = ControlResponse.from_json(text)
        except (KeyError, ValueError, TypeError, AttributeError) as problem:
            logger.warning("a control message was dropped: %s", problem)
            return
        waiting = self._waiting.get(response.request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    def _fail_all(self, why: str) -> None:
        self._ended = why
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError(why))

    async def ask(self, question: str, options: Sequence[str] | None = None, timeout: float | None = 60.0) -> str:
        """The person's answer; one of the options, if there are any."""
        request = ControlRequest.create("question", {"question": question, "options": list(options or ())})
        response = await self.send_request(request, timeout)
        data = _data(response)
        answer = data.get("answer")
        if not isinstance(answer, str):
            raise TypeError(f"the answer to a question must be text, got {answer!r:.80}")
        return answer

    async def approve(
        self, action: str, details: Mapping[str, Any] | None = None, timeout: float | None = 60.0
    ) -> bool:
        """True only for a strict yes."""
        request = ControlRequest.create("approval", {"action": action, "details": dict(details or {})})
        return _data(await self.send_request(request, timeout)).get("approved") is True

    async def progress(
        self, message: str, percentage: float | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        """Report without waiting for anybody. Raises ValueError for a percentage outside 0–100."""
        if percentage is not None and not 0 <= percentage <= 100:
            raise ValueError(f"percentage {percentage} lies outside 0–100")
        data: dict[str, Any] = {"message": message}
        if percentage is not None:
            data["percentage"] = percentage
        if details:
            data["details"] = dict(details)
        await self.notify(ControlRequest.create("progress_update", data))


def _data(response: ControlResponse) -> Mapping[str, Any]:
    if response.error is not None:
        raise RuntimeError(f"the control protocol answered with an error: {response.error}")
    return response.data if isinstance(response.data, Mapping) else {}
