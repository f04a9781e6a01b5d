"""What a session says and makes of what it hears, with a server that says whatever the test wants."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.remote.people import Person
from tests.remote.scripted import INFO, Scripted, discovered, initialized, opened
from toolreeve.core.deadline import Deadline
from toolreeve.core.peer import Era
from toolreeve.remote.lines.line import RemoteError, ServerAway
from toolreeve.remote.talk.session import Session

ELICITS: Mapping[str, Any] = {"elicitation": {}}


def calling(session: Session, peer: Person | None = None, **more: Any) -> "asyncio.Task[dict[str, Any]]":
    return asyncio.ensure_future(session.request("tools/call", {"name": "work", **more}, peer=peer, timeout=5))


def asking(number: int | str = 900, method: str = "elicitation/create") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": {"message": "why"}}


async def accept(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {}}


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_a_handshake_settles_on_a_version_that_the_server_speaks(version: str) -> None:
    line = Scripted()
    session = Session(line, client_info=INFO, capabilities={"roots": {}})
    opening = asyncio.ensure_future(session.open(Era.LEGACY, 5))

    asked = await line.answer(initialized(version))
    await opening

    assert asked["params"] == {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": INFO}
    assert await line.next() == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (session.alive, session.era, session.greeting.version) == (True, Era.LEGACY, version)


async def test_a_version_that_nobody_knows_is_refused_and_both_sides_are_named() -> None:
    line = Scripted()
    opening = asyncio.ensure_future(Session(line, client_info=INFO).open(Era.LEGACY, 5))
    await line.answer(initialized("1999-01-01"))

    with pytest.raises(ServerAway, match=r"1999-01-01.*2025-11-25"):
        await opening
    assert line.closed


@pytest.mark.parametrize("answer", [{"supportedVersions": ["2025-11-25"]}, {"supportedVersions": 7}, {}])
async def test_a_server_that_does_not_name_the_newer_version_is_greeted_in_the_older_way(answer: Any) -> None:
    line = Scripted()
    session = Session(line, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await line.answer(answer)
    second = await line.answer(initialized())
    await opening

    assert second["method"] == "initialize"
    assert "_meta" not in second["params"]
    assert session.era is Era.LEGACY


async def test_a_server_that_does_not_know_the_question_is_greeted_in_the_older_way() -> None:
    line = Scripted()
    session = Session(line, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await line.refuse(-32601)
    await line.answer(initialized())
    await opening

    assert session.era is Era.LEGACY


async def test_a_server_that_had_begun_in_the_newer_way_is_asked_once_more() -> None:
    line = Scripted()
    session = Session(line, client_info=INFO)
    opening = asyncio.ensure_future(session.open(None, 5))

    await line.refuse(-32603)
    await line.refuse(-32022, "unsupported", {"supported": ["2026-07-28"]})
    await line.answer(discovered())
    await opening

    assert session.era is Era.MODERN


async def test_a_server_that_never_answers_counts_as_away_with_its_last_words() -> None:
    line = Scripted()
    line.words = "waiting for the database"

    with pytest.raises(ServerAway, match=r"did not answer within 0.05 s; its last words: waiting for the database"):
        await Session(line, client_info=INFO).open(Era.LEGACY, 0.05)
    assert line.closed


async def test_a_refusal_to_begin_cannot_steer_the_terminal() -> None:
    line = Scripted()
    opening = asyncio.ensure_future(Session(line, client_info=INFO).open(Era.LEGACY, 5))
    await line.refuse(-32000, "go\x1b[2Jaway\u202e")

    with pytest.raises(ServerAway) as refused:
        await opening
    assert str(refused.value) == "the server refused to begin: go‹U+001B›[2Jaway‹U+202E›"


async def test_each_request_of_the_newer_era_says_who_asks_for_whom() -> None:
    line = Scripted()
    session = await opened(line, Era.MODERN, capabilities={"roots": {}})
    caller = Person(era=Era.MODERN, capabilities=ELICITS, log_level="error", wants_progress=True)

    calling(session, caller, _meta={"mine": 1, "progressToken": "of another wire"})
    calling(session)
    first, second = await line.next(), await line.next()

    prefix = "io.modelcontextprotocol/"
    assert first["params"]["_meta"] == {
        "mine": 1,
        "progressToken": first["id"],
        prefix + "protocolVersion": "2026-07-28",
        prefix + "clientInfo": INFO,
        prefix + "clientCapabilities": ELICITS,
        prefix + "logLevel": "error",
    }
    assert second["params"]["_meta"] == {
        prefix + "protocolVersion": "2026-07-28",
        prefix + "clientInfo": INFO,
        prefix + "clientCapabilities": {"roots": {}},
    }
    await session.close()


async def test_headers_repeat_what_intermediaries_route_by() -> None:
    line = Scripted("http")
    session = await opened(line, Era.MODERN)
    session.tool_schemas["work"] = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }

    calling(session, arguments={"region": "süd"})
    _, headers = await line.sent.get()

    assert headers == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "work",
        "Mcp-Param-Region": "=?base64?c8O8ZA==?=",
    }
    await session.close()


async def test_answers_find_their_requests_in_any_order() -> None:
    line = Scripted()
    session = await opened(line)
    first, second = calling(session), calling(session)
    one, two = await line.next(), await line.next()

    line.say({"jsonrpc": "2.0", "id": two["id"], "result": {"of": 2}})
    line.say({"jsonrpc": "2.0", "id": str(one["id"]), "result": {"of": 1}})

    assert (await first, await second) == ({"of": 1}, {"of": 2})


async def test_only_the_first_of_two_answers_counts() -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session)
    asked = await line.next()

    for answer in ("first", "second"):
        line.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"answer": answer}})

    assert await call == {"answer": "first"}


@pytest.mark.parametrize("number", [True, 1.0, None, [1], {"a": 1}, "x", "1" * 5000, 10**30, -1, "\u0661"])
async def test_answers_to_what_was_never_asked_are_passed_over(number: Any) -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session)
    asked = await line.next()

    line.say({"jsonrpc": "2.0", "id": number, "result": {"not": "yours"}})
    line.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"yours": True}})

    assert await call == {"yours": True}


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({"error": {"code": -5, "message": "bad", "data": [1]}}, -5, "bad"),
        ({"error": "just text"}, -32603, "the server failed without saying why"),
        ({"error": {"code": "x", "message": 7}}, -32603, "the server failed without saying why"),
        ({}, -32603, "the server's answer holds neither a result nor an error"),
        ({"result": "text"}, -32603, "the server's answer holds neither a result nor an error"),
        ({"result": None}, -32603, "the server's answer holds neither a result nor an error"),
    ],
)
async def test_what_is_no_result_is_an_error(answer: dict[str, Any], code: int, message: str) -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session)
    asked = await line.next()

    line.say({"jsonrpc": "2.0", "id": asked["id"], **answer})

    with pytest.raises(RemoteError) as failed:
        await call
    assert (failed.value.code, failed.value.message) == (code, message)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(
    [
        "notifications/progress",
        "notifications/cancelled",
        "notifications/message",
        "elicitation/create",
        "roots/list",
        "ping",
        "x",
    ]
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "id": json_values | st.integers(0, 4),
        "method": methods | json_values,
        "params": json_values
        | st.fixed_dictionaries(
            {}, optional={"progressToken": json_values, "requestId": json_values, "level": json_values}
        ),
        "result": json_values,
        "error": json_values,
    },
)


@given(said=st.lists(messages, max_size=8))
def test_nothing_that_a_server_says_raises(said: list[dict[str, Any]]) -> None:
    async def survive() -> None:
        line = Scripted()
        session = await opened(line)
        caller = Person(capabilities=ELICITS, log_level="debug", wants_progress=True, answer=accept)
        call = calling(session, caller)
        await line.next()
        for message in said:
            line.say(message)
        await session.close()
        await asyncio.wait({call}, timeout=5)
        assert call.done()

    asyncio.run(survive())


async def test_what_is_in_flight_when_the_line_is_lost_fails_with_the_reason() -> None:
    line = Scripted()
    told: list[str] = []
    session = await opened(line, on_lost=told.append)
    call = calling(session)
    await line.next()
    line.words = "Segmentation fault"

    line.lose("it ended with exit code 3")

    with pytest.raises(ServerAway, match="it ended with exit code 3; its last words: Segmentation fault"):
        await call
    with pytest.raises(ServerAway, match="exit code 3"):
        await session.request("ping")
    with pytest.raises(ServerAway, match="exit code 3"):
        session.notify("notifications/x")
    assert (session.alive, told) == (False, ["it ended with exit code 3"])


async def test_closing_fails_what_is_in_flight_and_is_no_loss() -> None:
    line = Scripted()
    told: list[str] = []
    session = await opened(line, on_lost=told.append)
    call = calling(session)
    await line.next()

    await session.close()
    line.lose("the wire is gone")

    with pytest.raises(ServerAway, match="closed"):
        await call
    assert (line.closed, told) == (True, [])


async def test_a_cancelled_call_is_taken_back_at_the_server() -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session)
    asked = await line.next()

    call.cancel()

    cancelled = {"requestId": asked["id"], "reason": "cancelled"}
    assert await line.next() == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}


async def test_how_a_conversation_begins_is_never_taken_back() -> None:
    line = Scripted()
    session = Session(line, client_info=INFO)

    with pytest.raises(ServerAway):
        await session.open(Era.MODERN, 0.05)

    assert [message["method"] for message, _ in _drained(line)] == ["server/discover"]


def _drained(line: Scripted) -> list[Any]:
    return [line.sent.get_nowait() for _ in range(line.sent.qsize())]


async def test_what_is_no_json_is_not_sent_and_says_so() -> None:
    class Strict(Scripted):
        def send(self, message: Any, headers: Any = None) -> None:
            str(message.get("params", {}).get("name")).encode()
            super().send(message, headers)

    session = await opened(Strict())

    with pytest.raises(RemoteError, match="cannot be sent as JSON") as refused:
        await session.request("tools/call", {"name": "\ud800"}, timeout=5)
    assert refused.value.code == -32602


async def test_other_notifications_go_to_whoever_watches_the_server() -> None:
    line = Scripted()
    noticed: list[tuple[str, Mapping[str, Any]]] = []
    await opened(line, on_notice=lambda method, params: noticed.append((method, params)))

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


async def test_a_question_is_never_put_to_somebody_else() -> None:
    line = Scripted()
    session = await opened(line)
    one = Person("one", capabilities=ELICITS, answer=accept)
    two = Person("two", capabilities=ELICITS, answer=accept)
    calls = [calling(session, one), calling(session, two)]
    await line.next()
    await line.next()

    line.say(asking())
    answer = await line.next()

    assert answer["error"]["code"] == -32603
    assert "several callers" in answer["error"]["message"]
    assert one.asked == two.asked == []
    await session.close()
    await asyncio.wait(calls)


async def test_a_question_while_a_call_without_a_caller_runs_is_put_to_nobody() -> None:
    line = Scripted()
    session = await opened(line)
    one = Person("one", capabilities=ELICITS, answer=accept)
    calls = [calling(session, one), calling(session)]
    await line.next()
    await line.next()

    line.say(asking())

    assert "error" in await line.next()
    assert one.asked == []
    await session.close()
    await asyncio.wait(calls)


async def test_two_calls_of_one_client_have_one_person_behind_them() -> None:
    line = Scripted()
    session = await opened(line)
    person = Person("one", capabilities=ELICITS, answer=accept)
    calls = [calling(session, person), calling(session, person)]
    await line.next()
    await line.next()

    line.say(asking("q-1"))

    assert await line.next() == {"jsonrpc": "2.0", "id": "q-1", "result": {"action": "accept", "content": {}}}
    await session.close()
    await asyncio.wait(calls)


async def test_a_request_that_only_lists_does_not_make_a_question_ambiguous() -> None:
    line = Scripted()
    session = await opened(line)
    person = Person("one", capabilities=ELICITS, answer=accept)
    call = calling(session, person)
    listing = asyncio.ensure_future(session.request("tools/list", {}))
    await line.next()
    await line.next()

    line.say(asking())

    assert (await line.next())["result"]["action"] == "accept"
    await session.close()
    await asyncio.wait({call, listing})


async def test_a_question_out_of_the_blue_is_answered_for_nobody() -> None:
    line = Scripted()
    await opened(line, roots=({"uri": "file:///ours"},))

    for number, method in enumerate(
        ("elicitation/create", "roots/list", "sampling/createMessage", "ping", "odd/thing")
    ):
        line.say(asking(number, method))
    answers = [await line.next() for _ in range(5)]

    assert [answer.get("result") for answer in answers] == [
        {"action": "cancel"},
        {"roots": [{"uri": "file:///ours"}]},
        None,
        {},
        None,
    ]
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32601, -32601]


@pytest.mark.parametrize(
    "caller",
    [Person(era=Era.MODERN, capabilities=ELICITS, answer=accept), Person(capabilities={"sampling": {}}, answer=accept)],
    ids=["of the newer era", "without the capability"],
)
async def test_a_caller_that_cannot_be_asked_is_not(caller: Person) -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session, caller)
    await line.next()

    line.say(asking())

    assert (await line.next())["result"] == {"action": "cancel"}
    assert caller.asked == []
    await session.close()
    await asyncio.wait({call})


async def test_an_error_of_the_caller_is_handed_on() -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session, Person(capabilities=ELICITS))
    await line.next()

    line.say(asking())

    assert (await line.next())["error"] == {"code": -1, "message": "nobody answers"}
    await session.close()
    await asyncio.wait({call})


class Thinking:
    """Somebody who has not decided yet."""

    def __init__(self) -> None:
        self.asked, self.decided, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.set()
        try:
            await self.decided.wait()
        finally:
            self.left.set()
        return {"action": "accept", "content": {}}


async def test_the_time_that_a_person_thinks_is_not_the_calls() -> None:
    line, thinking = Scripted(), Thinking()
    session = await opened(line)
    person = Person(capabilities=ELICITS, answer=thinking)
    deadline, passed = Deadline(0.2, 5.0), asyncio.Event()
    deadline.start(passed.set)
    call = asyncio.ensure_future(session.request("tools/call", {"name": "work"}, peer=person, deadline=deadline))
    asked = await line.next()
    line.say(asking())
    await thinking.asked.wait()

    done, _ = await asyncio.wait({call, asyncio.ensure_future(passed.wait())}, timeout=0.5)
    thinking.decided.set()
    await line.next()
    line.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"done": True}})

    assert not done
    assert await call == {"done": True}


async def test_a_question_ends_with_the_call_it_was_for() -> None:
    line, thinking = Scripted(), Thinking()
    session = await opened(line)
    call = calling(session, Person(capabilities=ELICITS, answer=thinking))
    asked = await line.next()
    line.say(asking())
    await thinking.asked.wait()

    line.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    await call

    await asyncio.wait_for(thinking.left.wait(), 5)
    assert not thinking.decided.is_set()


async def test_a_question_ends_with_its_call_though_somebody_elses_goes_on() -> None:
    line, thinking = Scripted(), Thinking()
    session = await opened(line)
    call = calling(session, Person("one", capabilities=ELICITS, answer=thinking))
    asked = await line.next()
    line.say(asking())
    await thinking.asked.wait()
    other = calling(session, Person("two", capabilities=ELICITS, answer=accept))
    await line.next()

    line.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    await call

    await asyncio.wait_for(thinking.left.wait(), 5)
    await session.close()
    await asyncio.wait({other})


async def test_a_server_can_take_its_question_back() -> None:
    line, thinking = Scripted(), Thinking()
    session = await opened(line)
    call = calling(session, Person(capabilities=ELICITS, answer=thinking))
    await line.next()
    line.say(asking(77))
    await thinking.asked.wait()

    line.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})

    await asyncio.wait_for(thinking.left.wait(), 5)
    await session.close()
    await asyncio.wait({call})


async def test_a_server_cannot_open_questions_without_end() -> None:
    line, thinking = Scripted(), Thinking()
    session = await opened(line)
    person = Person(capabilities=ELICITS, answer=thinking)
    call = calling(session, person)
    await line.next()

    for number in range(1000):
        line.say(asking(number))
    refused = [await line.next() for _ in range(1000 - 32)]

    assert all("too many" in each["error"]["message"] for each in refused)
    assert len(person.asked) == 32
    await session.close()
    await asyncio.wait({call})
