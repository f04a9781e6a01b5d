"""Notifications of a server: progress to its caller, others to the listener."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.upstream.callers import ScriptedCaller
from tests.upstream.scripted_transport import ScriptedTransport, opened
from tests.upstream.session.messages import start_call


async def test_other_notifications_go_to_the_listener_of_the_server() -> None:
    transport = ScriptedTransport()
    noticed: list[tuple[str, Mapping[str, Any]]] = []
    await opened(transport, on_notification=lambda method, params: noticed.append((method, params)))

    transport.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    transport.say({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b"}})

    assert noticed == [("notifications/tools/list_changed", {}), ("notifications/resources/updated", {"uri": "a:b"})]


async def test_progress_for_a_call_goes_to_its_caller_alone() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    one, two = ScriptedCaller("one", wants_progress=True), ScriptedCaller("two", wants_progress=True)
    calls = [start_call(session, one), start_call(session, two)]
    asked = [await transport.next(), await transport.next()]

    for message in asked:
        token = message["params"]["_meta"]["progressToken"]
        transport.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": token},
            }
        )
        transport.say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    await asyncio.gather(*calls)

    assert one.told == [("notifications/progress", {"progress": asked[0]["id"]})]
    assert two.told == [("notifications/progress", {"progress": asked[1]["id"]})]


async def test_a_flood_of_progress_is_bounded_and_the_last_of_it_arrives() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    caller = ScriptedCaller(wants_progress=True)
    call = start_call(session, caller)
    asked = await transport.next()

    for step in range(10_000):
        transport.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": asked["id"], "progress": step},
            }
        )
    transport.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    await call

    assert len(caller.told) == 256
    assert caller.told[-1][1]["progress"] == 9_999


async def test_a_log_message_is_dropped_while_two_callers_could_be_meant() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    one, two = ScriptedCaller("one", log_level="debug"), ScriptedCaller("two", log_level="debug")
    calls = [start_call(session, one), start_call(session, two)]
    asked = [await transport.next(), await transport.next()]

    transport.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "whose?"}})
    for message in asked:
        transport.say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    await asyncio.gather(*calls)

    assert one.told == two.told == []
