"""What the model of a real agent sees of Toolreeve, with a scripted model: one scenario after another.

`make agents` runs these; they are no part of `make test`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.real_agents.agents import AGENTS, PROMPT, Place, RealAgent
from toolreeve.testing import Reply, ScriptedModel, Turn, call, say

LONG = "echo begin 001; seq -f 'line %.0f of a long report: ........................................' 1000; echo end"

WRITTEN = re.compile(r'wrote 7 bytes|"written":true')
"""Some agents give their model the text of a result, some its data."""

pytestmark = pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)


def is_scenario(body: Mapping[str, Any]) -> bool:
    """Agents also ask their models for titles, summaries and routes."""
    return bool(body.get("tools")) and PROMPT in json.dumps(body, ensure_ascii=False)


def run(agent: RealAgent, place: Place, turns: Sequence[Reply]) -> list[str]:
    """The texts that the model was sent last, one per request: first the task, then each result."""
    with ScriptedModel([*turns, say("done")], only=is_scenario) as model:
        ended = agent.run(place, model)
    assert ended.returncode == 0, ended.stderr
    assert model.rejections == []
    assert len(model.requests) == len(turns) + 1, ended.stdout + ended.stderr
    return [last_text(body) for body in model.requests]


def last_text(body: Mapping[str, Any]) -> str:
    messages = body.get("messages") or body.get("input") or body["contents"]
    return "\n".join(strings(messages[-1]))


def strings(data: Any) -> list[str]:
    match data:
        case str():
            return [data]
        case Mapping():
            return [text for value in data.values() for text in strings(value)]
        case list():
            return [text for value in data for text in strings(value)]
    return []


def person(agent: RealAgent, place: Place, answer: str) -> Reply:
    """A turn that waits for the approval that the last result named, after a person has answered it."""

    def turn(body: Mapping[str, Any]) -> Turn:
        approval = approval_in(last_text(body))
        answered = place.toolreeve("approvals", answer, approval, "--yes")
        assert answered.returncode == 0, answered.stderr
        return call(agent.tool("wait_for_approval"), approval_id=approval, timeout=20)

    return turn


def approval_in(text: str) -> str:
    found = re.search(r"[Aa]pproval '?([0-9a-f]{10,})", text)
    assert found is not None, text
    return found[1]


def test_the_agent_offers_our_tools_to_its_model(agent: RealAgent, place: Place) -> None:
    with ScriptedModel([say("done")], only=is_scenario) as model:
        agent.run(place, model)

    offered = json.dumps(model.requests[0])  # Claude Code names them in a message, to be searched for
    assert [name for name in ("read_file", "write_file", "bash") if name not in offered] == []


def test_a_file_is_read(agent: RealAgent, place: Place) -> None:
    _, result = run(agent, place, [call(agent.tool("read_file"), path="notes.txt")])

    assert "the notes of today" in result


def test_a_write_waits_for_a_person_and_happens_after_a_yes(agent: RealAgent, place: Place) -> None:
    write = call(agent.tool("write_file"), path="new.txt", content="written")

    _, asked, result = run(agent, place, [write, person(agent, place, "allow")])

    assert "E_APPROVAL_PENDING" in asked
    assert WRITTEN.search(result)
    assert (place.workspace / "new.txt").read_text() == "written"


def test_a_write_that_a_person_denies_does_not_happen(agent: RealAgent, place: Place) -> None:
    write = call(agent.tool("write_file"), path="new.txt", content="written")

    _, _, result = run(agent, place, [write, person(agent, place, "deny")])

    assert "E_APPROVAL_DENIED" in result
    assert not (place.workspace / "new.txt").exists()


def test_both_streams_of_a_command_that_succeeds_are_seen(agent: RealAgent, place: Place) -> None:
    _, result = run(agent, place, [call(agent.tool("bash"), command="echo to-out; echo to-err >&2")])

    assert "to-out" in result
    assert "to-err" in result


def test_long_output_keeps_head_and_tail_and_can_be_read_on(agent: RealAgent, place: Place) -> None:
    def read_on(body: Mapping[str, Any]) -> Turn:
        found = re.search(r"read_output\W+call_id\W+([\w-]+)\W+offset\W+(\d+)", last_text(body))
        assert found is not None, last_text(body)
        return call(agent.tool("read_output"), call_id=found[1], offset=int(found[2]))

    _, cut, rest = run(agent, place, [call(agent.tool("bash"), command=LONG), read_on])

    assert "begin 001" in cut
    assert "end" in cut
    assert "line 500" not in cut
    assert "line" in rest
    assert "E_" not in rest


def test_what_was_pending_when_the_agent_ended_is_resumed_by_the_next(agent: RealAgent, place: Place) -> None:
    _, asked = run(agent, place, [call(agent.tool("write_file"), path="new.txt", content="written")])
    approval = approval_in(asked)
    assert place.toolreeve("approvals", "allow", approval, "--yes").returncode == 0

    _, result = run(agent, place, [call(agent.tool("wait_for_approval"), approval_id=approval, timeout=20)])

    assert WRITTEN.search(result)
    assert (place.workspace / "new.txt").read_text() == "written"
