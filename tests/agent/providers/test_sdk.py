"""Servers that do not behave: what they send is an error, never a crash, a leak or a full memory."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from toolreeve.agent.errors import ModelError, ModelErrorKind
from toolreeve.agent.messages import ModelReply, ModelRequest, UserMessage
from toolreeve.agent.providers import connect, sdk
from toolreeve.testing.model_server import ScriptedModel

REQUEST = ModelRequest(model="m", system="", messages=(UserMessage(text="hi"),))


@contextmanager
def server(respond: Callable[[Request], Response]) -> Iterator[int]:
    """Answers every request alike, on its port."""

    async def endpoint(request: Request) -> Response:
        return respond(request)

    listener = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=[Route("/{path:path}", endpoint, methods=["GET", "POST"])])
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        running.should_exit = True
        thread.join()


async def complete(provider: str, port: int) -> ModelReply:
    model = ScriptedModel([])
    model.port = port
    client = connect(provider, api_key="the-key", base_url=model.base_url(provider), timeout=20, environ={})
    try:
        return await client.complete(REQUEST, lambda _: None)
    finally:
        await client.close()


def stream(pieces: Iterator[bytes], **headers: str) -> StreamingResponse:
    return StreamingResponse(pieces, media_type="text/event-stream", headers=headers)


async def test_a_reply_without_end_is_given_up(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a limit below the usual one: for a line without end some clients take time in the square of its length."""
    monkeypatch.setattr(sdk, "MAX_REPLY", 4 << 20)
    line = b"data: " + b"x" * 65536  # no line end either
    with (
        server(lambda _: stream(itertools.repeat(line, 10 * sdk.MAX_REPLY // len(line)))) as port,
        pytest.raises(ModelError, match="larger than 4 MB") as caught,
    ):
        await complete(provider, port)

    assert caught.value.kind is ModelErrorKind.REJECTED


@pytest.mark.parametrize(
    "text",
    [
        b"data: not json\n\n",
        b"data: []\n\n",
        b"data: 7\n\n",
        b'data: {"choices": 7, "candidates": 7, "type": "message_delta"}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": [7]}}], "candidates": [{"content": {"parts": [7]}}]}\n\n',
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 7, "delta": {}}\n\n',
        b'data: {"type": "response.completed", "response": {"output": [7]}}\n\n',
        b"",
    ],
)
async def test_what_is_not_in_the_format_is_an_error_of_the_model(provider: str, text: bytes) -> None:
    with server(lambda _: stream(iter([text]))) as port, pytest.raises(ModelError, match=provider):
        await complete(provider, port)


async def test_a_compressed_reply_is_refused(provider: str) -> None:
    headers = {"content-encoding": "gzip"}
    with (
        server(lambda _: stream(iter([b"\x1f\x8b"]), **headers)) as port,
        pytest.raises(ModelError, match="compressed"),
    ):
        await complete(provider, port)


async def test_a_redirect_does_not_get_the_key(provider: str) -> None:
    seen: list[str] = []

    def elsewhere(request: Request) -> Response:
        seen.append(str(request.headers))
        return Response("")

    with (
        server(elsewhere) as other,
        server(lambda _: RedirectResponse(f"http://127.0.0.1:{other}/")) as port,
        pytest.raises(ModelError),
    ):
        await complete(provider, port)

    assert seen == []


async def test_an_error_is_shown_in_one_short_line(provider: str) -> None:
    body = b'{"error": {"message": "' + b"long\\n\\u001b[31m" * 10_000 + b'"}}'
    with (
        server(lambda _: Response(body, 400, media_type="application/json")) as port,
        pytest.raises(ModelError) as caught,
    ):
        await complete(provider, port)

    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)
