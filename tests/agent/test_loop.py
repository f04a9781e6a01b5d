"""The loop with every provider: real client, real HTTP, real tools."""

import asyncio
import functools
import operator
import threading
from dataclasses import replace

import pytest

from tests.agent.conftest import NewAgent
from tests.world import World
from toolreeve import tool
from toolreeve.agent.errors import ModelError
from toolreeve.agent.events import AgentEvent, EventKind
from toolreeve.agent.loop import MOST_CALLS, Stop
from toolreeve.agent.messages import ToolMessage
from toolreeve.permissions import ExecutionContext, PermissionMode, PermissionPolicy
from toolreeve.testing import break_off, call, fail, refuse, say


def test_a_tool_is_called_and_its_result_goes_back(new_agent: NewAgent, world: World, provider: str) -> None:
    (world.workspace / "notes.txt").write_text("the answer is 42")
    agent, model = new_agent(call("read_file", path="notes.txt"), say("It is 42."), provider=provider)

    result = agent.run(task="What is the answer?")

    assert result == {"answer": "It is 42."}
    assert result.completed
    assert model.rejections == []
    assert "the answer is 42" in str(model.requests[1])
    assert [(used["tool"], used["success"]) for used in result.tools_used] == [("read_file", True)]


def test_calls_of_one_turn_run_side_by_side_and_are_all_answered(
    new_agent: NewAgent, world: World, provider: str
) -> None:
    for name in "ab":
        (world.workspace / name).write_text(f"file {name}")
    both = say("Reading.") | call("read_file", path="a") | call("read_file", path="b") | call("read_file", path="c")
    agent, model = new_agent(both, say("done"), provider=provider)

    result = agent.run(task="Read both")

    assert model.rejections == []
    answers = next(message for message in result.messages if isinstance(message, ToolMessage)).answers
    assert [(answer.text.splitlines()[0][:7], answer.is_error) for answer in answers] == [
        ("file a", False),
        ("file b", False),
        ("Error [", True),
    ]


def test_a_stream_that_breaks_off_is_repeated(new_agent: NewAgent, provider: str) -> None:
    agent, model = new_agent(break_off(), say("whole"), provider=provider)

    assert agent.run(task="go") == {"answer": "whole"}
    assert len(model.requests) == 2


def test_a_rate_limit_is_waited_for(new_agent: NewAgent, provider: str) -> None:
    agent, model = new_agent(fail(429, "slow down", retry_after="0"), say("now"), provider=provider)

    assert agent.run(task="go") == {"answer": "now"}
    assert len(model.requests) == 2


def test_a_wrong_key_is_a_clear_error_at_once(new_agent: NewAgent, provider: str) -> None:
    agent, model = new_agent(fail(401, "invalid key"), say("never"), provider=provider)

    with pytest.raises(ModelError, match="invalid key"):
        agent.run(task="go")
    assert len(model.requests) == 1


def test_an_unknown_tool_is_answered_with_what_is_wrong(new_agent: NewAgent, provider: str) -> None:
    agent, model = new_agent(call("read_fil", path="x"), say("sorry"), provider=provider)

    result = agent.run(task="go")

    assert result.completed
    assert "E_TOOL_NOT_FOUND" in str(model.requests[1])
    assert "read_file" in str(model.requests[1])


def test_arguments_that_are_not_json_are_answered_with_what_is_wrong(new_agent: NewAgent, provider: str) -> None:
    """Gemini does not send such a call: the turn is repeated."""
    agent, model = new_agent(call("read_file", raw='{"path": oops'), say("sorry"), provider=provider)

    assert agent.run(task="go") == {"answer": "sorry"}
    assert model.rejections == []
    assert provider == "gemini" or "E_INVALID_PARAMS" in str(model.requests[1])


def test_a_call_in_a_reply_that_was_cut_is_not_run(new_agent: NewAgent, world: World, provider: str) -> None:
    cut = call("write_file", path="half.txt", content="hal") | say("", cut=True)
    agent, model = new_agent(cut, say("sorry"), provider=provider, mode=None, approve=lambda request: request.allow())

    assert agent.run(task="go").completed
    assert not (world.workspace / "half.txt").exists()
    assert model.rejections == []


def test_a_run_ends_at_its_step_limit_with_what_was_said(new_agent: NewAgent, world: World) -> None:
    (world.workspace / "a").write_text("x")
    turns = [say(f"step {n}") | call("read_file", path="a", offset=n) for n in range(5)]
    agent, _ = new_agent(*turns, config={"max_steps": 3})

    result = agent.run(task="go")

    assert (result.outcome.stop, result.outcome.steps, result["answer"]) == (Stop.STEPS, 3, "step 2")


def test_a_forbidden_path_ends_the_run(new_agent: NewAgent) -> None:
    agent, model = new_agent(call("read_file", path="/etc/shadow"), say("never"))

    result = agent.run(task="go")

    assert result.outcome.stop is Stop.FATAL
    assert "E_PATH_FORBIDDEN" in result.outcome.why
    assert len(model.requests) == 1


def test_the_same_call_with_the_same_result_is_noticed_and_then_ended(new_agent: NewAgent, world: World) -> None:
    (world.workspace / "a").write_text("x")
    agent, model = new_agent(*[call("read_file", path="a")] * 9)

    result = agent.run(task="go")

    assert result.outcome.stop is Stop.LOOP
    assert result.outcome.steps == 5
    assert "same result 3 times" in str(model.requests[3])


def test_a_recoverable_error_carries_suggestions_into_the_next_turn(
    new_agent: NewAgent, world: World, provider: str
) -> None:
    (world.workspace / "backend/tests").mkdir(parents=True)
    (world.workspace / "backend/tests/test_api.py").write_text("")
    agent, model = new_agent(call("read_file", path="tests/test_api.py"), say("found"), provider=provider)

    result = agent.run(task="go")

    assert "backend/tests/test_api.py" in str(model.requests[1])
    assert result.tools_used[0]["auto_recovery"] is True


def test_a_denial_with_a_note_reaches_the_model(new_agent: NewAgent, world: World, provider: str) -> None:
    agent, model = new_agent(
        call("write_file", path="a", content="b"),
        say("I will not."),
        provider=provider,
        approve=lambda request: request.deny(note="ask the owner first"),
    )

    assert agent.run(task="go") == {"answer": "I will not."}
    assert "ask the owner first" in str(model.requests[1])
    assert not (world.workspace / "a").exists()


PRICED = {
    "openai": "gpt-4o",
    "openai_responses": "gpt-4o",
    "anthropic": "claude-opus-4-8",
    "gemini": "gemini-2.5-pro",
}


@pytest.mark.parametrize("provider", PRICED)
def test_a_run_ends_at_its_budget_with_what_was_achieved(new_agent: NewAgent, world: World, provider: str) -> None:
    (world.workspace / "a").write_text("x")
    turns = [say(f"step {n}", input_tokens=1_000_000) | call("read_file", path="a", offset=n) for n in range(5)]
    agent, _ = new_agent(*turns, provider=provider, config={"budget_limit": 0.01, "model": PRICED[provider]})

    result = agent.run(task="go")

    assert (result.outcome.stop, result.outcome.steps, result["answer"]) == (Stop.COST, 1, "step 0")
    assert result.outcome.cost > 1


async def test_a_turn_that_a_fatal_error_ends_is_charged_too(new_agent: NewAgent) -> None:
    turn = replace(call("read_file", path="/etc/shadow"), input_tokens=1_000_000)
    policy = PermissionPolicy(ExecutionContext(budget_limit=100.0))
    agent, _ = new_agent(turn, config={"model": "gpt-4o"}, permission_policy=policy)

    result = await agent.run_async(task="go")

    assert result.outcome.stop is Stop.FATAL
    assert agent._reeve.budget is not None
    assert agent._reeve.budget.spent == pytest.approx(result.outcome.cost)
    assert result.outcome.cost > 1


@pytest.mark.parametrize("provider", PRICED)
def test_a_budget_that_cannot_be_enforced_is_refused(new_agent: NewAgent, provider: str) -> None:
    agent, model = new_agent(say("never"), provider=provider, config={"budget_limit": 0.01, "model": "nobody-knows"})

    with pytest.raises(ModelError, match="no price is known for 'nobody-knows'"):
        agent.run(task="go")
    assert model.requests == []


async def test_cancelling_a_run_ends_its_tool_and_says_so_once(new_agent: NewAgent, provider: str) -> None:
    events: list[EventKind] = []
    reached = {kind: threading.Event() for kind in EventKind}

    def watch(event: AgentEvent) -> None:
        events.append(event.kind)
        reached[event.kind].set()

    agent, model = new_agent(
        call("bash", command="sleep 60"),
        say("never"),
        provider=provider,
        permission_policy=PermissionPolicy(ExecutionContext(mode=PermissionMode.BYPASS)),
    )
    running = asyncio.create_task(agent.run_async(task="go", on_event=watch))
    await asyncio.to_thread(reached[EventKind.TOOL_STARTED].wait)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(reached[EventKind.ENDED].wait, 30)
    assert len(model.requests) == 1
    assert events.count(EventKind.ENDED) == 1


def test_a_refusal_is_a_clear_end(new_agent: NewAgent, provider: str) -> None:
    agent, model = new_agent(refuse(), say("never"), provider=provider)

    result = agent.run(task="go")

    assert result.outcome.stop is Stop.MODEL
    assert "the model refused to answer" in result.outcome.why
    assert len(model.requests) == 1


def test_an_answer_that_was_cut_is_not_called_complete(new_agent: NewAgent, provider: str) -> None:
    agent, _ = new_agent(say("The first half", cut=True), provider=provider)

    result = agent.run(task="go")

    assert (result.outcome.stop, result["answer"]) == (Stop.TOKENS, "The first half")


def test_of_thousands_of_calls_in_one_reply_few_are_run_and_all_are_answered(
    new_agent: NewAgent, provider: str
) -> None:
    many = functools.reduce(operator.or_, [call("calculate", expression=str(number)) for number in range(500)])
    agent, model = new_agent(many, say("done"), provider=provider)

    result = agent.run(task="go")

    assert result.completed
    assert model.rejections == []
    assert len(result.tools_used) == MOST_CALLS


def test_arguments_of_megabytes_arrive_whole(new_agent: NewAgent, world: World, provider: str) -> None:
    content = "0123456789" * 50_000
    write = call("write_file", path="big.txt", content=content)
    agent, model = new_agent(
        write, say("done"), provider=provider, approve=lambda request: request.allow(), config={"context_tokens": 10**6}
    )

    assert agent.run(task="go").completed
    assert model.rejections == []
    assert (world.workspace / "big.txt").read_text() == content


def _lamp(number: int) -> object:
    @tool(name=f"lamp_{number}", danger="safe", description=f"Switch the lamp of floor {number} on.")
    def switch(room: str) -> str:
        return f"lamp {number} in {room}"

    return switch


def test_among_hundreds_of_tools_the_others_are_found_by_search(new_agent: NewAgent, provider: str) -> None:
    tools = [_lamp(number) for number in range(200)]
    turns = [call("search_tools", query="lamp floor 187"), call("lamp_187", room="hall"), say("lit")]
    agent, model = new_agent(*turns, provider=provider, tools=tools)

    result = agent.run(task="Light floor 187")

    assert model.rejections == []
    assert "lamp_187" not in str(model.requests[0])
    assert "search_tools" in str(model.requests[0])
    assert "lamp_187(room: string): Switch the lamp of floor 187 on" in str(model.requests[1])
    assert "lamp 187 in hall" in str(model.requests[2])
    assert result.completed


def test_a_tool_that_was_not_shown_runs_as_well(new_agent: NewAgent) -> None:
    tools = [_lamp(number) for number in range(200)]
    agent, model = new_agent(call("lamp_199", room="attic"), say("lit"), tools=tools)

    assert agent.run(task="Light the attic").completed
    assert "lamp 199 in attic" in str(model.requests[1])


def test_a_result_of_5_mb_is_cut_and_names_the_next_call(new_agent: NewAgent, world: World, provider: str) -> None:
    (world.workspace / "big.log").write_text("line\n" * 1_000_000)
    agent, model = new_agent(call("read_file", path="big.log"), say("long"), provider=provider)

    assert agent.run(task="Read it").completed
    assert model.rejections == []
    assert len(str(model.requests[1])) < 200_000
    assert "offset" in str(model.requests[1])


def test_a_context_that_overflows_is_shortened_once_and_tried_again(
    new_agent: NewAgent, world: World, provider: str
) -> None:
    (world.workspace / "a").write_text("x" * 20_000)
    reads = [call("read_file", path="a", offset=number) for number in range(3)]
    agent, model = new_agent(
        *reads, fail(400, "prompt is too long: maximum context length exceeded"), say("fits"), provider=provider
    )

    result = agent.run(task="go")

    assert result.completed
    assert len(str(model.requests[-1])) < len(str(model.requests[-2]))
