"""What a server tells on its own: progress to its caller, news to whoever watches, doubt to nobody."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.upstream.people import Person
from tests.upstream.scripted import Scripted, opened
from tests.upstream.session.talking import calling


async def test_other_notifications_go_to_whoever_watches_the_server() -> None:
    line = Scripted()
    noticed: list[tuple[str, Mapping[str, Any]]] = []
    await opened(line, on_notification=lambda method, params: noticed.append((method, params)))

    line.say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    line.say({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b"}})

    assert noticed == [("notifications/tools/list_changed", {}), ("notifications/resources/updated", {"uri": "a:b"})]


async def test_progress_for_a_call_goes_to_its_caller_alone() -> None:
    line = Scripted()
    session = await opened(line)
    one, two = Person("one", wants_progress=True), Person("two", wants_progress=True)
    calls = [calling(session, one), calling(session, two)]
    asked = [await line.next(), await line.next()]

    for message in asked:
        token = message["params"]["_meta"]["progressToken"]
        line.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": token},
            }
        )
        line.say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    await asyncio.gather(*calls)

    assert one.told == [("notifications/progress", {"progress": asked[0]["id"]})]
    assert two.told == [("notifications/progress", {"progress": asked[1]["id"]})]


async def test_a_flood_of_progress_is_bounded_and_the_last_of_it_arrives() -> None:
    line = Scripted()
    session = await opened(line)
    caller = Person(wants_progress=True)
    call = calling(session, caller)
    asked = await line.next()

    for step in range(10_000):
        line.say(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": asked["id"], "progress": step},
            }
        )
    line.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    await call

    assert len(caller.told) == 256
    assert caller.told[-1][1]["progress"] == 9_999


async def test_a_log_line_is_shown_to_nobody_while_two_callers_could_be_meant() -> None:
    line = Scripted()
    session = await opened(line)
    one, two = Person("one", log_level="debug"), Person("two", log_level="debug")
    calls = [calling(session, one), calling(session, two)]
    asked = [await line.next(), await line.next()]

    line.say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "whose?"}})
    for message in asked:
        line.say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
    await asyncio.gather(*calls)

    assert one.told == two.told == []
