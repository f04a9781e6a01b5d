"""HTTP+SSE transport of revision 2024-11-05: one event stream, each message a POST.

The server names the endpoint for the POSTs. It must be on the stream's own origin: the POSTs carry the user's
credentials.
"""

import asyncio

import httpx2

from toolreeve.core.urls import join_url, parse_url
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.rpc.messages import Message
from toolreeve.upstream.transports.http_base import EVENT_STREAM, JSON_BODY, HttpTransport, MessageExchange
from toolreeve.upstream.transports.http_client import HttpClient, explain, media_type, redirect_problem
from toolreeve.upstream.transports.transport import Kind, RemoteError, ServerUnavailable


class SseTransport(HttpTransport):
    def __init__(self, client: HttpClient) -> None:
        super().__init__(client)
        self._listener: asyncio.Task[None] | None = None
        self._endpoint = ""

    @property
    def kind(self) -> Kind:
        return "sse"

    async def _connect(self) -> None:
        endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._listener = self._group.create_task(self._listen(endpoint))
        self._endpoint = await endpoint

    async def _end_session(self) -> None:
        """The end of the stream says it."""

    def _handle_locally(self, exchange: MessageExchange, message: Message) -> bool:  # noqa: ARG002  # all are sent
        return False

    def _on_response(self, message: Message, exchange: MessageExchange) -> None:
        """Responses come on the stream, not with an exchange."""

    def _cancel_streams(self) -> None:
        if self._listener is not None:
            self._listener.cancel()

    async def _listen(self, endpoint: "asyncio.Future[str]") -> None:
        try:
            headers = {"accept": EVENT_STREAM, "cache-control": "no-store"}
            async with self._client.exchange("GET", self._client.url, headers) as response:
                await self._read_events(response, endpoint)
            reason = "the server ended the stream"
        except Exception as problem:  # any failure ends the stream
            reason = explain(problem)
        if endpoint.done():
            self._lose(reason)
        else:
            endpoint.set_exception(ServerUnavailable(reason))

    async def _read_events(self, response: httpx2.Response, endpoint: "asyncio.Future[str]") -> None:
        if not response.is_success or media_type(response) != EVENT_STREAM:
            status = response.status_code
            raise ServerUnavailable(redirect_problem(response) or f"the server has no event stream: HTTP {status}")
        async for event in httpx2.EventSource(response, max_event_size=MAX_MESSAGE):
            match event.event:
                case "endpoint" if not endpoint.done():
                    endpoint.set_result(_resolve_endpoint(self._client.url, event.data))
                case "message" if event.data and endpoint.done():
                    self._receive_event(event.data)

    def _receive_event(self, data: str) -> None:
        try:
            self._receive(data, None)
        except RemoteError as problem:
            self._last_problem = problem.message

    async def _post(self, exchange: MessageExchange) -> None:
        headers = {**JSON_BODY, **exchange.headers}
        async with self._client.exchange("POST", self._endpoint, headers, exchange.body) as response:
            if not response.is_success:
                await self._raise_for_status(response)


def _resolve_endpoint(stream: str, named: str) -> str:
    """Raises ToolError, ServerUnavailable."""
    endpoint = parse_url(join_url(stream, named.strip()))
    if endpoint.origin != parse_url(stream).origin:
        raise ServerUnavailable(f"the server's endpoint is on {endpoint.origin}, another origin than the stream's")
    return endpoint.url
