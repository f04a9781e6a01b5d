"""How is a server of the first revision reached? One stream brings everything it says; each message is a POST.

The server names the place that takes the messages. It must lie on the stream's own origin: what is sent there carries
the user's credentials.
"""

import asyncio

import httpx2

from toolreeve.core.urls import join_url, parse_url
from toolreeve.upstream.transports.http_base import JSON_BODY, Errand, HttpTransport
from toolreeve.upstream.transports.http_client import HttpClient, explain, media_type, unfollowed
from toolreeve.upstream.transports.transport import MAX_MESSAGE, Kind, Message, RemoteError, ServerUnavailable

EVENTS = "text/event-stream"


class SseTransport(HttpTransport):
    def __init__(self, web: HttpClient) -> None:
        super().__init__(web)
        self._endpoint: asyncio.Future[str] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._target = ""

    @property
    def kind(self) -> Kind:
        return "sse"

    async def _arrive(self) -> None:
        self._endpoint = asyncio.get_running_loop().create_future()
        self._listening = self._group.create_task(self._listen(self._endpoint))
        self._target = await self._endpoint

    async def _leave(self) -> None:
        """The end of the stream says it."""

    def _forgo(self, errand: Errand, message: Message) -> bool:  # noqa: ARG002  # here every message is sent
        return False

    def _answered(self, message: Message, errand: Errand) -> None:
        """No answer comes back with an errand here."""

    def _end_streams(self) -> None:
        if self._listening is not None:
            self._listening.cancel()

    async def _listen(self, endpoint: "asyncio.Future[str]") -> None:
        try:
            headers = {"accept": EVENTS, "cache-control": "no-store"}
            async with self._web.exchange("GET", self._web.url, headers) as response:
                await self._hear_out(response, endpoint)
            ended = "the server has ended the stream"
        except Exception as problem:  # whatever it is, it is why the stream is no more
            ended = explain(problem)
        if endpoint.done():
            self._lose(ended)
        else:
            endpoint.set_exception(ServerUnavailable(ended))

    async def _hear_out(self, response: httpx2.Response, endpoint: "asyncio.Future[str]") -> None:
        if not response.is_success or media_type(response) != EVENTS:
            raise ServerUnavailable(
                unfollowed(response) or f"the server has no stream of events: HTTP {response.status_code}"
            )
        async for event in httpx2.EventSource(response, max_event_size=MAX_MESSAGE):
            match event.event:
                case "endpoint" if not endpoint.done():
                    endpoint.set_result(_endpoint(self._web.url, event.data))
                case "message" if event.data and endpoint.done():
                    self._overhear(event.data)

    def _overhear(self, data: str) -> None:
        try:
            self._take(data, None)
        except RemoteError as problem:
            self._words = problem.message

    async def _post(self, errand: Errand) -> None:
        headers = {**JSON_BODY, **errand.headers}
        async with self._web.exchange("POST", self._target, headers, errand.body) as response:
            if not response.is_success:
                await self._refuse(response)


def _endpoint(stream: str, named: str) -> str:
    """Raises ToolError, ServerAway."""
    place, base = parse_url(join_url(stream, named.strip())), parse_url(stream)
    if place.origin != base.origin:
        raise ServerUnavailable(f"the server wants messages sent to {place.origin}, which is not its own place")
    return place.url
