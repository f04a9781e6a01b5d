"""Transcripts in a real store, also after the process died in the middle."""

import time

from tests.world import World
from toolreeve.agent.messages import AssistantMessage, ToolMessage, UserMessage
from toolreeve.agent.transcript import Transcript, load_messages
from toolreeve.formats import ParsedCall
from toolreeve.record.agent_runs import AgentRunRow
from toolreeve.runtime.toolreeve import Toolreeve

ROW = AgentRunRow(id="r1", user="ann", workspace="/w", session="s", model="ollama:m", question="q", began=1.0)
CALL = ParsedCall("write_file", {"path": "a"}, "id0")


def transcript(reeve: Toolreeve) -> Transcript:
    return Transcript(
        reeve.internals.store.agent_runs, ROW, redact=lambda text: text.replace("hunter2", "[redacted]"), now=time.time
    )


async def test_a_call_that_was_interrupted_is_answered_as_unknown(world: World) -> None:
    asked = AssistantMessage(text="writing", calls=(CALL,), provider="anthropic", raw=[{"type": "text"}])
    async with world.reeve() as reeve:
        kept = transcript(reeve)
        await kept.begin()
        await kept.keep([UserMessage(text="go"), asked])

    async with world.reeve() as reeve:
        messages = await load_messages(reeve.internals.store.agent_runs, "r1")

    assert messages[:2] == [UserMessage(text="go"), asked]
    assert isinstance(messages[1], AssistantMessage)
    assert messages[1].raw == [{"type": "text"}]
    answers = messages[2]
    assert isinstance(answers, ToolMessage)
    assert "not known" in answers.answers[0].text


async def test_secrets_are_not_stored(world: World) -> None:
    async with world.reeve() as reeve:
        kept = transcript(reeve)
        await kept.begin()
        call = ParsedCall(id="c1", name="fetch", args={"headers": {"x-hunter2": 1}})
        await kept.keep([UserMessage(text='the password is "hunter2"'), AssistantMessage(text="", calls=(call,))])
        messages = await load_messages(reeve.internals.store.agent_runs, "r1")

    assert messages[0] == UserMessage(text='the password is "[redacted]"')
    assert b"hunter2" not in world.database_bytes()


async def test_only_new_messages_are_stored(world: World) -> None:
    async with world.reeve() as reeve:
        kept = transcript(reeve)
        await kept.begin()
        await kept.keep([UserMessage(text="a")])
        await kept.keep([UserMessage(text="shortened"), UserMessage(text="b")])
        messages = await load_messages(reeve.internals.store.agent_runs, "r1")

    assert messages == [UserMessage(text="a"), UserMessage(text="b")]
