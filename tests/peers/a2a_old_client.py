"""A client of A2A 0.3, run with the SDK of that version: prints what it sees as JSON."""

# mypy: ignore-errors

import asyncio
import json
import sys
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import DataPart, Message, Part, Role, TaskIdParams, TaskQueryParams, TextPart


def message(content: Any, **more: Any) -> Any:
    part = TextPart(text=content) if isinstance(content, str) else DataPart(data=content)
    return Message(message_id=f"m-{content!s:.200}", role=Role.user, parts=[Part(root=part)], **more)


async def send(client: Any, *words: Any, **more: Any) -> tuple[Any, list[str]]:
    """The task as it is at the end, and the kinds of its events."""
    seen = [each async for each in client.send_message(message(*words, **more))]
    return seen[-1][0], ["task" if event is None else event.kind for _, event in seen]


async def main(url: str, token: str) -> None:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=20) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        told: dict[str, Any] = {"version": card.protocol_version, "skills": [skill.id for skill in card.skills]}
        client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        done, told["events"] = await send(client, "/calculate expression='6 * 7'")
        told["result"] = done.artifacts[0].parts[0].root.text
        call = {"toolId": "write_file", "parameters": {"path": "a.txt", "content": "written"}}
        asked, _ = await send(client, {"toolCalls": [call]})
        ended, _ = await send(client, "yes", task_id=asked.id, context_id=asked.context_id)
        told["states"] = [asked.status.state.value, ended.status.state.value]
        found = await client.get_task(TaskQueryParams(id=ended.id))
        told["found"] = found.status.state.value
        call["parameters"]["path"] = "b.txt"
        other, _ = await send(client, {"toolCalls": [call]})
        canceled = await client.cancel_task(TaskIdParams(id=other.id))
        told["canceled"] = canceled.status.state.value
    print(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
