"""A server with the A2A door, and the SDK's own client for it."""

import json
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.types import Message, Part, Role, SendMessageRequest, StreamResponse, Task
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from tests.serve.api.api_server import ApiServer


def tool_call(tool: str, number: str = "1", **parameters: Any) -> dict[str, Any]:
    return {"toolCalls": [{"id": number, "toolId": tool, "parameters": parameters}]}


def message(content: str | Mapping[str, Any], **more: Any) -> SendMessageRequest:
    part = Part(text=content) if isinstance(content, str) else Part(data=ParseDict(content, Value()))
    return SendMessageRequest(message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[part], **more))


@asynccontextmanager
async def connected(
    server: ApiServer, headers: Mapping[str, str] | None = None, *, binding: str = "JSONRPC", streaming: bool = False
) -> AsyncIterator[Client]:
    async with httpx.AsyncClient(headers=headers, timeout=20) as http:
        config = ClientConfig(streaming=streaming, supported_protocol_bindings=[binding], httpx_client=http)
        yield await ClientFactory(config).create_from_url(server.url)


async def send(client: Client, content: str | Mapping[str, Any], **more: Any) -> Task:
    """The task as the last response shows it."""
    return [response async for response in client.send_message(message(content, **more))][-1].task


async def stream(client: Client, content: str | Mapping[str, Any], **more: Any) -> list[StreamResponse]:
    return [response async for response in client.send_message(message(content, **more))]


async def post(server: ApiServer, method: str, params: Any, **headers: str) -> dict[str, Any]:
    """The answer of a JSON-RPC request as it is sent; of a stream, the first event."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    text = (await server.client.post("/a2a", json=body, headers=headers)).text
    answer: dict[str, Any] = json.loads(text.removeprefix("data: "))
    return answer
