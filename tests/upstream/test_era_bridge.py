"""A caller of the legacy era and a server that knows the modern one only: what is asked, and what is refused."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.upstream.callers import ScriptedCaller
from toolreeve.core.mcp import Era, PeerError
from toolreeve.rpc.messages import Message
from toolreeve.upstream.era_bridge import MAX_ROUNDS, send_request
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import RemoteError, Transport

QUESTION = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {"type": "object"}}}


class QuestioningServer:
    """A line to a server of the modern era that answers each call of a tool with the next of `answers`."""

    kind = "stdio"
    not_mcp = False

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers, self.heard = answers, list[Mapping[str, Any]]()

    async def open(self, hear: Any, lost: Any) -> None:
        self._hear = hear

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        if message["method"] == "server/discover":
            self._hear({"id": message["id"], "result": {"supportedVersions": ["2026-07-28"], "capabilities": {}}})
        elif "id" in message:
            self.heard.append(message["params"])
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            self._hear({"id": message["id"], "result": answer})

    async def close(self) -> None:
        return None

    def last_output(self) -> str:
        return ""


async def asked(
    answers: list[dict[str, Any]], peer: ScriptedCaller | None
) -> tuple[dict[str, Any], list[Mapping[str, Any]]]:
    transport = QuestioningServer(answers)
    checked: Transport = transport  # type: ignore[assignment]
    session = UpstreamSession(checked, client_info={"name": "t", "version": "1"})
    await session.open(Era.MODERN)
    return await send_request(session, "tools/call", {"name": "t", "arguments": {"a": 1}}, peer), transport.heard


def required(**questions: Any) -> dict[str, Any]:
    return {"resultType": "input_required", "inputRequests": questions, "requestState": "s1"}


async def yes(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"method": method, "message": params["message"]}}


async def test_the_person_is_asked_and_the_call_is_made_again_with_the_answer() -> None:
    result, heard = await asked([required(q=QUESTION), {"content": []}], ScriptedCaller(answer=yes))

    assert result == {"content": []}
    assert heard[1]["requestState"] == "s1"
    assert heard[1]["inputResponses"] == {
        "q": {"action": "accept", "content": {"method": "elicitation/create", "message": "Which?"}}
    }
    assert (heard[1]["name"], heard[1]["arguments"]) == ("t", {"a": 1})


async def test_a_caller_that_cannot_be_asked_counts_as_a_cancel() -> None:
    _, heard = await asked([required(q=QUESTION), {"content": []}], ScriptedCaller())

    assert heard[1]["inputResponses"] == {"q": {"action": "cancel"}}


async def test_a_server_that_never_stops_asking_is_given_up() -> None:
    with pytest.raises(RemoteError, match=f"after {MAX_ROUNDS} rounds"):
        await asked([required(q=QUESTION)], ScriptedCaller(answer=yes))


@pytest.mark.parametrize(
    "questions",
    [
        {"q": {"method": "tools/call", "params": {}}},
        {"q": None},
        {"q": {"method": ["x"]}},
        {str(number): QUESTION for number in range(33)},
    ],
)
async def test_an_unknown_question_is_refused_without_asking_the_caller(questions: dict[str, Any]) -> None:
    person = ScriptedCaller(answer=yes)

    with pytest.raises(RemoteError):
        await asked([required(**questions)], person)

    assert person.asked == []


async def test_an_error_of_the_callers_model_ends_the_call() -> None:
    async def broken(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
        raise PeerError(-7, "no model", {"why": 1})

    with pytest.raises(RemoteError) as told:
        await asked([required(q={"method": "sampling/createMessage", "params": {}})], ScriptedCaller(answer=broken))

    assert told.value.to_dict() == {"code": -7, "message": "no model", "data": {"why": 1}}


async def test_without_a_caller_the_question_is_the_answer() -> None:
    result, _ = await asked([required(q=QUESTION)], None)

    assert result == required(q=QUESTION)
