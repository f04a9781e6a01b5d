"""Runs of an agent whose answers are reviewed by output governors."""

import pytest

from tests.agent.conftest import NewAgent
from tests.world import World
from toolreeve.agent.loop import Stop
from toolreeve.config import Approval
from toolreeve.testing import say

GOVERNORS = """
output_governors:
  - {id: polite, type: python, command: ["tests.approval.governing:polite"]}
output_settings: {max_iterations: %d}
"""


@pytest.mark.parametrize(
    ("most", "completed", "answer"), [(2, True, "please wait"), (1, False, "later"), (0, False, "no")]
)
def test_a_rejected_answer_goes_back_to_the_model_a_bounded_number_of_times(
    new_agent: NewAgent, world: World, most: int, completed: bool, answer: str
) -> None:
    path = world.state.parent / "governors.yaml"
    path.write_text(GOVERNORS % most)
    settings = world.settings(approval=Approval(governors_file=str(path)))
    agent, model = new_agent(say("no"), say("later"), say("please wait"), settings=settings)

    result = agent.run(task="Answer")

    assert result["answer"] == answer
    assert result.completed is completed
    assert len(model.requests) == most + 1
    if most:
        assert "Say please." in str(model.requests[1])
    if not completed:
        assert result.outcome.stop is Stop.OUTPUT
        assert result.outcome.why == "refused by governor 'polite': impolite"
