from types import MappingProxyType

from toolreeve.core.snapshot import MAX_DEPTH, MAX_VALUES, snapshot


def test_a_snapshot_is_equal_and_not_the_same() -> None:
    value = {"a": 1, "b": [1, {"c": None}], "d": (1, 2)}

    copied = snapshot(value)

    assert copied == {"a": 1, "b": [1, {"c": None}], "d": [1, 2]}
    assert copied["b"] is not value["b"]


def test_any_mapping_becomes_a_plain_one() -> None:
    assert snapshot(MappingProxyType({"a": MappingProxyType({})})) == {"a": {}}


def test_a_value_that_is_not_plain_is_named_by_its_type() -> None:
    assert snapshot({"when": {1, 2}, 3: b"x"}) == {"when": "<set>", "<int>": "<bytes>"}


def test_depth_is_bounded() -> None:
    value: dict[str, object] = {}
    value["self"] = value

    copied = snapshot(value)

    depth = 0
    while isinstance(copied, dict):
        copied = copied["self"]
        depth += 1
    assert (depth, copied) == (MAX_DEPTH, "[nested too deeply]")


def test_the_number_of_values_is_bounded() -> None:
    copied = snapshot({"list": list(range(MAX_VALUES * 5)), "after": 1})

    assert len(copied["list"]) <= MAX_VALUES
    assert copied["list"][-1].endswith(" more]")
    assert copied["[more]"] == 1
