from typing import Literal

import pytest
from pydantic import BaseModel

from toolreeve.agent.outputs import OutputReader
from toolreeve.agent.signature import OutputField, Signature


class Issue(BaseModel):
    line: int
    text: str


class Review(Signature):
    verdict: Literal["accept", "reject"] = OutputField(description="The decision")
    issues: list[Issue] = OutputField(description="What is wrong")
    note: str = OutputField(default="none")


class Plain(Signature):
    answer: str = OutputField()


def test_a_single_text_field_is_the_reply_itself() -> None:
    reader = OutputReader(Plain)

    assert reader.instruction == ""
    assert reader.read("anything {") == {"answer": "anything {"}


@pytest.mark.parametrize("wrap", ["{}", "```json\n{}\n```", "Here it is:\n```\n{}\n```\nDone."])
def test_fields_arrive_as_instances_of_their_types(wrap: str) -> None:
    reply = wrap.replace("{}", '{"verdict": "reject", "issues": [{"line": 3, "text": "typo"}]}')

    assert OutputReader(Review).read(reply) == {
        "verdict": "reject",
        "issues": [Issue(line=3, text="typo")],
        "note": "none",
    }


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("not json", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"verdict": "maybe", "issues": []}', "/verdict"),
        ('{"verdict": "accept"}', "issues"),
        ('{"verdict": "accept", "issues": [{"line": "x", "text": ""}]}', "/issues/0/line"),
    ],
)
def test_a_reply_that_does_not_fit_says_what_is_wrong(reply: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        OutputReader(Review).read(reply)


def test_the_model_is_told_the_schema() -> None:
    instruction = OutputReader(Review).instruction

    assert '"accept"' in instruction
    assert "The decision" in instruction
    assert '"$defs"' in instruction
