"""A session with a server made with the official library, over its pipes, in both eras."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.upstream.callers import ScriptedCaller
from toolreeve.core.mcp import Era
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.process import inherited
from toolreeve.upstream.transports.stdio import StdioTransport

pytestmark = pytest.mark.asyncio(loop_scope="module")
SERVER = Path(__file__).parent / "servers" / "official.py"
INFO = {"name": "toolreeve", "version": "0"}
CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}}, "roots": {}}
PATIENCE = 20.0


async def opened(era: Era | None) -> UpstreamSession:
    transport = StdioTransport([sys.executable, str(SERVER)], environment=inherited(os.environ))
    roots = ({"uri": "file:///ours", "name": "ours"},)
    session = UpstreamSession(transport, client_info=INFO, capabilities=CAPABILITIES, roots=roots)
    await session.open(era, PATIENCE)
    return session


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def legacy() -> AsyncIterator[UpstreamSession]:
    session = await opened(Era.LEGACY)
    yield session
    await session.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def modern() -> AsyncIterator[UpstreamSession]:
    session = await opened(None)
    yield session
    await session.close()


@pytest.fixture(params=["legacy", "modern"])
def session(request: pytest.FixtureRequest, legacy: UpstreamSession, modern: UpstreamSession) -> UpstreamSession:
    return {"legacy": legacy, "modern": modern}[request.param]


async def call(
    session: UpstreamSession, tool: str, peer: ScriptedCaller | None = None, **arguments: Any
) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return await session.request("tools/call", params, peer=peer, timeout=PATIENCE)


def text(result: Mapping[str, Any]) -> str:
    return str(result["content"][0]["text"])


async def test_a_handshake_and_a_question_find_out_the_same_about_a_server(
    legacy: UpstreamSession, modern: UpstreamSession
) -> None:
    assert (legacy.era, modern.era) == (Era.LEGACY, Era.MODERN)
    assert legacy.server_info == modern.server_info == {"name": "official", "version": "1.2.3"}
    assert legacy.instructions == modern.instructions == "Ask politely."
    assert "tools" in legacy.server_capabilities
    assert "tools" in modern.server_capabilities


async def test_answers_come_back_as_they_were_sent(session: UpstreamSession) -> None:
    result = await call(session, "picture")

    assert result["content"] == [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]
    assert result["structuredContent"] == {"deep": {"er": [1, None, "é"]}}


async def test_schemas_come_with_their_definitions(session: UpstreamSession) -> None:
    listed = await session.request("tools/list", {}, timeout=PATIENCE)

    assert listed["tools"][0]["inputSchema"]["$defs"] == {"Text": {"type": "string", "minLength": 1}}


async def test_many_calls_at_once_each_get_their_own_answer(session: UpstreamSession) -> None:
    results = await asyncio.gather(*(call(session, "echo", text=str(number)) for number in range(50)))

    assert [text(result) for result in results] == [str(number) for number in range(50)]


async def test_progress_reaches_the_caller_in_order_and_before_the_answer(session: UpstreamSession) -> None:
    caller = ScriptedCaller(wants_progress=True, era=session.era)

    await call(session, "steps", caller)

    assert [params["message"] for _, params in caller.told] == ["step 0", "step 1", "step 2"]
    assert all(method == "notifications/progress" and "progressToken" not in params for method, params in caller.told)


async def test_no_progress_is_asked_for_that_nobody_wants(session: UpstreamSession) -> None:
    caller = ScriptedCaller(era=session.era)

    await call(session, "steps", caller)

    assert caller.told == []


async def test_log_lines_reach_a_caller_that_wants_such(session: UpstreamSession) -> None:
    caller = ScriptedCaller(log_level="info", era=session.era)

    await call(session, "log", caller)

    assert [params["data"] for _, params in caller.told] == ["great"]


async def test_a_call_that_is_given_up_is_stopped_at_the_server(session: UpstreamSession) -> None:
    waiting = asyncio.ensure_future(call(session, "wait"))
    await call(session, "echo", text="it is there by now")
    waiting.cancel()

    assert text(await call(session, "stopped")) == "it was told to stop"


async def test_a_call_that_takes_too_long_fails_and_the_session_goes_on(session: UpstreamSession) -> None:
    with pytest.raises(TimeoutError):
        await session.request("tools/call", {"name": "wait", "arguments": {}}, timeout=0.05)

    assert text(await call(session, "echo", text="still here")) == "still here"


async def test_a_question_of_the_older_era_is_put_to_the_caller(legacy: UpstreamSession) -> None:
    async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"colour": "green"}}

    caller = ScriptedCaller(capabilities=CAPABILITIES, answer=answer)

    assert text(await call(legacy, "ask", caller)) == "accept {'colour': 'green'}"
    assert [params["message"] for _, params in caller.asked] == ["Which colour?"]


async def test_a_question_without_anybody_to_answer_it_is_cancelled(legacy: UpstreamSession) -> None:
    assert text(await call(legacy, "ask")) == "cancel None"


async def test_a_question_of_the_newer_era_is_part_of_the_answer(modern: UpstreamSession) -> None:
    caller = ScriptedCaller(era=Era.MODERN, capabilities=CAPABILITIES)
    first = await call(modern, "ask", caller)
    answers = {"colour": {"action": "accept", "content": {"colour": "red"}}}
    params = {"name": "ask", "arguments": {}, "inputResponses": answers, "requestState": first["requestState"]}

    second = await modern.request("tools/call", params, peer=caller, timeout=PATIENCE)

    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["colour"]["params"]["message"] == "Which colour?"
    assert text(second) == "halfway {'colour': 'red'}"


async def test_roots_are_the_callers_or_else_our_own(legacy: UpstreamSession) -> None:
    async def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"roots": [{"uri": "file:///theirs"}]}

    caller = ScriptedCaller(capabilities={"roots": {}}, answer=answer)

    assert text(await call(legacy, "roots", caller)) == "file:///theirs"
    assert text(await call(legacy, "roots")) == "file:///ours"
