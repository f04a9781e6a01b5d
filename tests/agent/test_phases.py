"""Runs in phases, in a real project with real checks."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.agent.conftest import NewAgent
from tests.world import World
from toolreeve import ExecutionContext, PermissionMode, PermissionPolicy
from toolreeve.agent.events import AgentEvent, EventKind
from toolreeve.agent.loop import Stop
from toolreeve.config.sections.quality import Quality
from toolreeve.testing import Turn, call, say

ACCEPT_EDITS = PermissionPolicy(ExecutionContext(mode=PermissionMode.ACCEPT_EDITS))
WRONG = "def test_sum() -> None:\n    assert 1 + 1 == 3\n"
RIGHT = "def test_sum() -> None:\n    assert 1 + 1 == 2\n"


@pytest.fixture
def project(world: World) -> World:
    (world.workspace / "pyproject.toml").write_text(
        '[project]\nname = "shop"\nversion = "1"\n[tool.pytest.ini_options]\n'
        'addopts = "-q -p no:langsmith_plugin -p no:schemathesis"\n'  # slow to import, and not used
    )
    (world.workspace / "test_sum.py").write_text(RIGHT)
    return world


def write(content: str) -> Turn:
    return call("write_file", path="test_sum.py", content=content)


def phases(events: list[AgentEvent]) -> list[Mapping[str, Any]]:
    return [event.data for event in events if event.kind is EventKind.PHASE]


async def test_failing_checks_go_back_to_the_model_until_they_pass(new_agent: NewAgent, project: World) -> None:
    turns = [say("the sum is right"), say("change it"), write(WRONG), say("done"), write(RIGHT), say("repaired")]
    agent, model = new_agent(*turns, config={"phases": True}, permission_policy=ACCEPT_EDITS)
    events: list[AgentEvent] = []

    result = await agent.run_async(task="Change the sum", on_event=events.append)

    assert (result.completed, result["answer"]) == (True, "repaired")
    assert [event["phase"] for event in phases(events)] == ["spec", "plan", "execute", "verify", "repair", "verify"]
    assert [event["checks"]["run_tests"] for event in phases(events) if "checks" in event] == [False, True]
    assert "assert 1 + 1 == 3" in str(model.requests[4])


async def test_checks_that_still_fail_after_the_last_repair_end_the_run(new_agent: NewAgent, project: World) -> None:
    agent, _ = new_agent(
        say("spec"),
        say("plan"),
        write(WRONG),
        *[say("done")] * 5,
        config={"phases": True},
        permission_policy=ACCEPT_EDITS,
        settings=project.settings(quality=Quality(lint=("true",), typecheck=("true",))),
    )

    result = await agent.run_async(task="Change the sum")

    assert result.outcome.stop is Stop.CHECKS
    assert "run_tests still failed after 3 repairs" in result.outcome.why


async def test_nothing_is_changed_before_the_plan_is_made(new_agent: NewAgent, project: World) -> None:
    agent, model = new_agent(
        write(WRONG), say("SIMPLE"), say("nothing"), config={"phases": True}, permission_policy=ACCEPT_EDITS
    )

    result = await agent.run_async(task="go")

    assert (project.workspace / "test_sum.py").read_text() == RIGHT
    assert "only tools that read" in str(model.requests[1])
    assert "write_file" not in {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert result.tools_used == []


async def test_a_simple_task_is_answered_without_plan_and_checks(new_agent: NewAgent, project: World) -> None:
    agent, model = new_agent(say("SIMPLE"), say("42"), config={"phases": True})
    events: list[AgentEvent] = []

    result = await agent.run_async(task="What is 6*7?", on_event=events.append)

    assert result == {"answer": "42"}
    assert [event["phase"] for event in phases(events)] == ["spec", "execute"]
    assert len(model.requests) == 2
