"""Which response belongs to which request, whatever a server sends."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.upstream.callers import ScriptedCaller
from tests.upstream.scripted_transport import ScriptedTransport, opened
from tests.upstream.session.messages import ELICITS, accept, start_call
from toolreeve.upstream.transports.transport import RemoteError


async def test_responses_find_their_requests_in_any_order() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    first, second = start_call(session), start_call(session)
    one, two = await transport.next(), await transport.next()

    transport.say({"jsonrpc": "2.0", "id": two["id"], "result": {"of": 2}})
    transport.say({"jsonrpc": "2.0", "id": str(one["id"]), "result": {"of": 1}})

    assert (await first, await second) == ({"of": 1}, {"of": 2})


async def test_only_the_first_of_two_responses_counts() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    call = start_call(session)
    asked = await transport.next()

    for answer in ("first", "second"):
        transport.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"answer": answer}})

    assert await call == {"answer": "first"}


@pytest.mark.parametrize("number", [True, 1.0, None, [1], {"a": 1}, "x", "1" * 5000, 10**30, -1, "\u0661"])
async def test_responses_to_unknown_requests_are_ignored(number: Any) -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    call = start_call(session)
    asked = await transport.next()

    transport.say({"jsonrpc": "2.0", "id": number, "result": {"not": "yours"}})
    transport.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"yours": True}})

    assert await call == {"yours": True}


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({"error": {"code": -5, "message": "bad", "data": [1]}}, -5, "bad"),
        ({"error": "just text"}, -32603, "the server failed without giving a reason"),
        ({"error": {"code": "x", "message": 7}}, -32603, "the server failed without giving a reason"),
        ({}, -32603, "the server's response has neither a result nor an error"),
        ({"result": "text"}, -32603, "the server's response has neither a result nor an error"),
        ({"result": None}, -32603, "the server's response has neither a result nor an error"),
    ],
)
async def test_a_response_without_a_result_is_an_error(answer: dict[str, Any], code: int, message: str) -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    call = start_call(session)
    asked = await transport.next()

    transport.say({"jsonrpc": "2.0", "id": asked["id"], **answer})

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
        transport = ScriptedTransport()
        session = await opened(transport)
        caller = ScriptedCaller(capabilities=ELICITS, log_level="debug", wants_progress=True, answer=accept)
        call = start_call(session, caller)
        await transport.next()
        for message in said:
            transport.say(message)
        await session.close()
        await asyncio.wait({call}, timeout=5)
        assert call.done()

    asyncio.run(survive())
