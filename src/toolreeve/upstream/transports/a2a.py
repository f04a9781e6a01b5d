"""A2A agents as servers: skills are tools, calls are messages.

It answers MCP requests itself, so that names, pins, danger and limits are those of every server. The agent's card is
read on the origin that the user configured, and only an endpoint of that origin is used: headers and logins stay there.
"""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

from toolreeve.core import json
from toolreeve.core.urls import parse_url
from toolreeve.core.visible import one_line
from toolreeve.rpc.errors import INTERNAL_ERROR, METHOD_NOT_FOUND
from toolreeve.rpc.messages import Message
from toolreeve.upstream.tools.a2a_skills import AgentEndpoint, find_endpoint, is_running, read_answer, skills_as_tools
from toolreeve.upstream.transports.http_base import JSON_BODY, HttpTransport, MessageExchange
from toolreeve.upstream.transports.http_client import HttpClient
from toolreeve.upstream.transports.transport import Kind, RemoteError, ServerUnavailable

WELL_KNOWN = "/.well-known/agent-card.json"
FIRST_POLL_SECONDS = 0.2
MAX_POLL_SECONDS = 5.0
CANCEL_SECONDS = 5.0


class A2aTransport(HttpTransport):
    def __init__(self, client: HttpClient) -> None:
        super().__init__(client)
        self._card: Mapping[str, Any] = {}
        self._endpoint: AgentEndpoint | None = None

    @property
    def kind(self) -> Kind:
        return "a2a"

    async def _connect(self) -> None:
        url = self._client.url
        card = await self._read_card(url if url.endswith(".json") else url.rstrip("/") + WELL_KNOWN)
        endpoint = find_endpoint(card)
        if endpoint is None:
            raise ServerUnavailable("the agent card offers no JSON-RPC endpoint of A2A 1.0 or 0.3")
        if parse_url(endpoint.url).origin != parse_url(url).origin:
            raise ServerUnavailable(
                f"the agent card names another origin: {one_line(endpoint.url)[:200]}; set url to it"
            )
        self._card = card
        self._endpoint = endpoint

    async def _read_card(self, url: str) -> Mapping[str, Any]:
        async with self._client.exchange("GET", url, {"accept": "application/json"}) as response:
            if not response.is_success:
                await self._raise_for_card(response.status_code)
            try:
                card = json.loads(await response.aread())
            except ValueError:
                card = None
        if not isinstance(card, dict):
            raise ServerUnavailable("the agent card is no JSON object")
        return card

    async def _raise_for_card(self, status: int) -> None:
        raise ServerUnavailable(f"the agent card cannot be read: HTTP {status}")

    async def _post(self, exchange: MessageExchange) -> None:
        message: Message = json.loads(exchange.body)
        if exchange.id is None:
            return
        result = await self._answer(exchange.method, message.get("params") or {})
        self._deliver({"jsonrpc": "2.0", "id": exchange.id, "result": result})

    async def _answer(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        match method:
            case "initialize":
                info = {"name": str(self._card.get("name", "")), "version": str(self._card.get("version", ""))}
                return {
                    "protocolVersion": params.get("protocolVersion"),
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
            case "tools/list":
                return {"tools": skills_as_tools(self._card)}
            case "tools/call":
                return await self._call(params)
            case "ping":
                return {}
        raise RemoteError(METHOD_NOT_FOUND, f"an A2A agent has no {method}")

    async def _call(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        endpoint = self._endpoint
        if endpoint is None:
            raise ServerUnavailable("the connection is not open")
        sent = endpoint.message(str(params.get("name")), params.get("arguments") or {}, str(uuid.uuid4()))
        answer = await self._request(endpoint, *sent)
        pause = FIRST_POLL_SECONDS
        while is_running(answer):
            try:
                await asyncio.sleep(pause)
                answer = await self._request(endpoint, *endpoint.about("GetTask", answer["id"]))
            except asyncio.CancelledError:
                self._group.create_task(self._cancel(endpoint, answer["id"]))
                raise
            pause = min(pause * 1.5, MAX_POLL_SECONDS)
        return read_answer(answer)

    async def _cancel(self, endpoint: AgentEndpoint, number: str) -> None:
        """Nobody waits for the task any more."""
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._request(endpoint, *endpoint.about("CancelTask", number))
        except (RemoteError, TimeoutError) as problem:
            self._last_problem = f"the task {number!r:.80} was not canceled: {problem}"

    async def _request(self, endpoint: AgentEndpoint, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The task or message in the response. Codes of A2A mean something else in MCP: they stay in the text."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        headers = {**JSON_BODY, "accept": "application/json", "a2a-version": endpoint.version}
        async with self._client.exchange("POST", endpoint.url, headers, body) as response:
            if not response.is_success:
                await self._raise_for_status(response)
            try:
                found = json.loads(await response.aread())
            except ValueError:
                found = None
        match found:
            case {"error": {"code": int(code), "message": str(text)}}:
                raise RemoteError(INTERNAL_ERROR, f"the agent refuses it: {one_line(text)[:1000]} (A2A error {code})")
            case {"result": {"task": dict(answer)} | {"message": dict(answer)} | dict(answer)}:
                return answer
        raise RemoteError(INTERNAL_ERROR, "the agent's response is none of A2A")

    def _handle_locally(self, exchange: MessageExchange, message: Message) -> bool:
        if exchange.method == "notifications/cancelled":
            cancelled = self._exchanges.get((message.get("params") or {}).get("requestId"))
            if cancelled is not None:
                cancelled.cancel()
        return exchange.id is None

    def _on_response(self, message: Message, exchange: MessageExchange) -> None:
        """There are no sessions."""

    def _cancel_streams(self) -> None:
        """There are none."""

    async def _end_session(self) -> None:
        """There is none."""
