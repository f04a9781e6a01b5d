"""The connection itself: ids, floods, crashes and withdrawn requests."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.acp.connection import MAX_RUNNING, AcpConnection, AcpError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def ignore(_: str, __: Mapping[str, Any]) -> None:
    """No notification matters here."""


async def forever(_: str, __: Mapping[str, Any]) -> Mapping[str, Any]:
    await asyncio.Event().wait()
    return {}


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_flood_of_requests_and_an_id_in_use_are_refused() -> None:
    sent: list[Any] = []
    connection = AcpConnection(sent.append, forever, ignore)
    for number in range(MAX_RUNNING + 1):
        connection.receive({"id": number, "method": "terminal/wait_for_exit", "params": {}})
    connection.receive({"id": 3, "method": "terminal/wait_for_exit", "params": {}})

    assert [(each["id"], each["error"]["code"]) for each in sent] == [(MAX_RUNNING, -32603), (3, -32600)]
    await settle()
    await connection.cancel_requests()
    assert {each["error"]["code"] for each in sent[2:]} == {-32800}


async def test_a_request_that_is_cancelled_before_it_begins_is_answered() -> None:
    sent: list[Any] = []
    connection = AcpConnection(sent.append, forever, ignore)
    connection.receive({"id": 1, "method": "fs/read_text_file", "params": {}})
    connection.receive({"method": "$/cancel_request", "params": {"requestId": 1}})
    await settle()

    assert [(each["id"], each["error"]["code"]) for each in sent] == [(1, -32800)]


async def test_a_request_that_crashes_is_answered_and_harms_no_other() -> None:
    sent: list[Any] = []

    async def handle(method: str, _: Mapping[str, Any]) -> Mapping[str, Any]:
        if method == "crash":
            raise ZeroDivisionError
        return {"ok": True}

    connection = AcpConnection(sent.append, handle, ignore)
    connection.receive({"id": 1, "method": "crash"})
    connection.receive({"id": "2", "method": "works"})
    await settle()

    assert sent[0]["error"]["code"] == -32603
    assert sent[1] == {"jsonrpc": "2.0", "id": "2", "result": {"ok": True}}


async def test_a_withdrawn_request_is_cancelled_at_the_peer() -> None:
    sent: list[Any] = []
    connection = AcpConnection(sent.append, forever, ignore)
    asking = asyncio.create_task(connection.request("session/request_permission", {}, withdraws=True))
    await settle()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)

    assert sent[1] == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": sent[0]["id"]}}


async def test_a_lost_peer_ends_what_waits_for_it() -> None:
    connection = AcpConnection(lambda _: None, forever, ignore)
    asking = asyncio.create_task(connection.request("session/prompt", {}))
    await settle()
    connection.lose("it ended with exit code 3")

    with pytest.raises(AcpError, match="exit code 3"):
        await asking
    with pytest.raises(AcpError, match="exit code 3"):
        await connection.request("session/prompt", {})


@given(st.dictionaries(st.sampled_from(["id", "method", "params", "result", "error", "x"]), JSON))
def test_no_message_ends_the_connection(message: dict[str, Any]) -> None:
    async def receive() -> None:
        async def handle(_: str, __: Mapping[str, Any]) -> Mapping[str, Any]:
            return {}

        connection = AcpConnection(lambda _: None, handle, ignore)
        connection.receive(message)
        await settle()
        await connection.cancel_requests()

    asyncio.run(receive())
