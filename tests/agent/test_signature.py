import pytest

from toolreeve.agent.signature import InputField, OutputField, Signature, bind
from toolreeve.core.errors import ToolreeveError


class Review(Signature):
    """Review a change."""

    diff: str = InputField(description="The change")
    depth: int = InputField(desc="How closely", default=1)
    verdict: str = OutputField(description="The decision")


def test_fields_are_read_from_the_class_in_their_order() -> None:
    shown = [(field.name, field.type, field.description) for field in Review.inputs.values()]

    assert shown == [("diff", str, "The change"), ("depth", int, "How closely")]
    assert list(Review.outputs) == ["verdict"]
    assert Review.instruction == "Review a change."


def test_a_subclass_inherits_fields() -> None:
    class Strict(Review):
        rule: str = InputField()

    assert list(Strict.inputs) == ["diff", "depth", "rule"]
    assert list(Review.inputs) == ["diff", "depth"]


def test_inputs_are_bound_like_arguments() -> None:
    assert bind(Review, {"diff": "x"}) == {"depth": 1, "diff": "x"}
    with pytest.raises(TypeError, match="missing input 'diff'"):
        bind(Review, {})
    with pytest.raises(TypeError, match=r"unexpected input 'dif'.*diff, depth"):
        bind(Review, {"diff": "x", "dif": "y"})


def test_an_optional_field_without_a_default_is_none() -> None:
    class Loose(Signature):
        note: str = InputField(required=False)

    assert bind(Loose, {}) == {"note": None}


def test_a_name_cannot_be_input_and_output() -> None:
    with pytest.raises(ToolreeveError, match="'diff' is both"):

        class Twice(Review):
            diff: str = OutputField()
