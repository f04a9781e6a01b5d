"""`ScriptedModel`: a loopback server that replies by a script."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from toolreeve.testing.script import Reply, Turn
from toolreeve.testing.wire.anthropic import AnthropicFormat
from toolreeve.testing.wire.format import RequestRejected, WireFormat
from toolreeve.testing.wire.gemini import GeminiFormat
from toolreeve.testing.wire.openai_chat import OpenAIChatFormat
from toolreeve.testing.wire.openai_responses import OpenAIResponsesFormat

MODELS = ("scripted", "llama3.2:3b", "deepseek-coder:6.7b", "llava:7b", "bge-m3:latest")
_PATHS = {"openai": "/v1", "openai_responses": "/v1", "ollama": "/v1", "anthropic": "", "gemini": "/v1beta"}


class ScriptedModel:
    """Use it as `with ScriptedModel([say("hello")]) as model`. Each request takes the next turn; after the last, the
    model says that its script is over. `requests` are the bodies of the requests that were accepted, `rejections` the
    reasons for those that a real provider would have refused. Requests for which `only` is false (agents also ask for
    titles and the like) take no turn and are replied to with `ok`."""

    def __init__(self, turns: Iterable[Reply], *, only: Callable[[Mapping[str, Any]], bool] | None = None) -> None:
        self._turns = iter(list(turns))
        self._only = only
        self.requests: list[dict[str, Any]] = []
        self.rejections: list[str] = []
        self._server: uvicorn.Server | None = None

    def base_url(self, provider: str) -> str:
        return f"http://127.0.0.1:{self.port}{_PATHS[provider]}"

    def __enter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(self._app(), log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.should_exit = True
            self._thread.join()

    def _app(self) -> Starlette:
        chat = OpenAIChatFormat()
        routes = [
            Route("/v1/chat/completions", self._endpoint(chat), methods=["POST"]),
            Route("/v1/responses", self._endpoint(OpenAIResponsesFormat()), methods=["POST"]),
            Route("/v1/messages", self._endpoint(AnthropicFormat()), methods=["POST"]),
            Route("/v1beta/models/{model}:streamGenerateContent", self._endpoint(GeminiFormat()), methods=["POST"]),
            Route("/v1beta/models/{model}:generateContent", self._endpoint(GeminiFormat()), methods=["POST"]),
            Route("/v1/messages/count_tokens", _count_tokens, methods=["POST"]),
            Route("/v1/models", _list_models),
            Route("/v1beta/models", _list_gemini_models),
        ]
        return Starlette(routes=routes)

    def _endpoint(self, wire: WireFormat) -> Any:
        async def respond(request: Request) -> Response:
            body = await request.json()
            try:
                wire.check(body, request.headers)
            except (RequestRejected, KeyError, TypeError) as refusal:
                reason = str(refusal) if isinstance(refusal, RequestRejected) else f"malformed: {refusal!r}"
                self.rejections.append(reason)
                status = refusal.status if isinstance(refusal, RequestRejected) else 400
                return JSONResponse(wire.error(status, reason), status)
            turn = await self._turn(body)
            if turn.status != 200:
                return JSONResponse(wire.error(turn.status, turn.message), turn.status, dict(turn.headers))
            model = str(body.get("model") or request.path_params.get("model"))
            if not (body.get("stream") or request.url.path.endswith(":streamGenerateContent")):
                return JSONResponse(wire.reply(turn, model))
            return StreamingResponse(_stream(wire, turn, model), media_type="text/event-stream")

        return respond

    async def _turn(self, body: dict[str, Any]) -> Turn:
        if self._only is not None and not self._only(body):
            return Turn(text="ok")
        number = len(self.requests)
        self.requests.append(body)
        reply = next(self._turns, Turn(text="The script is over."))
        turn = reply if isinstance(reply, Turn) else await run_in_threadpool(reply, body)
        return turn.numbered(number)


def _stream(wire: WireFormat, turn: Turn, model: str) -> Iterator[str]:
    yield from wire.events(turn, model)


def _listed(ids: Iterable[str]) -> list[Mapping[str, Any]]:
    return [
        {
            "id": name,
            "object": "model",
            "type": "model",
            "display_name": name,
            "created": 1,
            "created_at": "2026-01-01T00:00:00Z",
            "owned_by": "scripted",
        }
        for name in ids
    ]


async def _count_tokens(_: Request) -> Response:
    return JSONResponse({"input_tokens": Turn().input_tokens})


async def _list_models(_: Request) -> Response:
    return JSONResponse({"object": "list", "data": _listed(MODELS), "has_more": False})


async def _list_gemini_models(_: Request) -> Response:
    return JSONResponse({"models": [{"name": f"models/{name}"} for name in MODELS]})
