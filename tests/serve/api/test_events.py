"""The event stream: live, resumed from the record, filtered, and ended with its credential."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.serve.api.api_server import ApiServer, read_events, serving
from tests.world import World
from toolreeve.approval.channels.inbox import InboxChannel
from toolreeve.core.call import Role

PATH = "/api/v1/events"


@asynccontextmanager
async def listening(
    server: ApiServer, query: str = "", headers: dict[str, str] | None = None, *, path: str = PATH
) -> AsyncIterator[AsyncIterator[dict[str, str]]]:
    async with server.client.stream("GET", f"{path}{query}", headers=headers) as answer:
        assert answer.status_code == 200
        events = read_events(answer.aiter_lines())
        assert await anext(events) == {"retry": "1000"}
        yield events


@pytest.mark.parametrize("path", [PATH, "/streaming/sse"])
async def test_a_listener_gets_the_envelope_of_each_call_with_its_row(world: World, path: str) -> None:
    async with serving(world.reeve()) as server, listening(server, "?kinds=call.finished", path=path) as events:
        await server.call("calculate", {"expression": "1 + 1"})
        event = await anext(events)

    envelope = json.loads(event["data"])
    assert (event["event"], event["id"]) == ("call.finished", str(envelope["data"]["row"]["seq"]))
    assert envelope.keys() == {"event", "task_id", "timestamp", "component", "data"}
    assert (envelope["event"], envelope["data"]["tool_id"]) == ("tool_execution", "calculate")
    assert (envelope["data"]["status"], envelope["data"]["row"]["main"]) == ("completed", "1 + 1")


async def test_last_event_id_continues_from_the_record_also_in_another_server(world: World) -> None:
    async with serving(world.reeve()) as server:
        for number in range(4):
            await server.call("calculate", {"expression": str(number)})
        async with listening(server, "?after=0&kinds=call.finished") as events:
            seen = [await anext(events), await anext(events)]
    async with serving(world.reeve()) as server:
        resumed = {"last-event-id": seen[-1]["id"]}
        async with listening(server, "?kinds=tool_execution", resumed) as events:
            rest = [await anext(events), await anext(events)]

    assert [json.loads(each["data"])["data"]["row"]["main"] for each in (*seen, *rest)] == ["0", "1", "2", "3"]


async def test_calls_of_another_process_are_streamed_too(world: World) -> None:
    async with serving(world.reeve()) as server:
        admin = await server.token(Role.ADMIN)
        async with listening(server, "?kinds=call.finished", admin) as events, world.reeve() as other:
            await other.call("calculate", expression="40 + 2")
            event = await anext(events)

    assert json.loads(event["data"])["data"]["row"]["main"] == "40 + 2"


async def test_a_revoked_token_ends_its_stream(world: World) -> None:
    async with serving(world.reeve()) as server:
        viewer = await server.token(Role.VIEWER, "vera")
        async with listening(server, headers=viewer) as events:
            await server.reeve.internals.store.credentials.revoke(next(iter(server.secrets.values())))
            with pytest.raises(httpx2.TransportError):
                await anext(events)


async def test_what_is_no_event_id_is_refused(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.client.get(PATH, headers={"last-event-id": "-1"})

    assert (answer.status_code, "Last-Event-ID" in answer.json()["detail"]) == (422, True)


async def test_questions_and_answers_of_all_processes_are_streamed(world: World) -> None:
    channel = InboxChannel()
    async with serving(world.reeve()) as server, world.reeve(approve=[channel]) as other:
        admin = await server.token(Role.ADMIN)
        kinds = "?kinds=approval.requested,approval.resolved"
        async with listening(server, kinds, admin) as events:
            with channel.watched():
                waiting = asyncio.create_task(other.call("write_file", path="a.txt", content="x"))
                asked = json.loads((await anext(events))["data"])
                await server.reeve.approvals.decide(asked["data"]["id"], answer="deny", by="ada", dead_time=0)
                resolved = json.loads((await anext(events))["data"])
                await waiting

    assert (asked["event"], asked["data"]["card"]["args"]["content"]) == ("approval_requested", "x")
    assert (resolved["data"]["id"], resolved["data"]["outcome"]) == (asked["data"]["id"], "denied")
