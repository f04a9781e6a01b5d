from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.execution.actions import action
from toolreeve.core.call import Principal, Role
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.limits import Caching
from toolreeve.core.result import Output
from toolreeve.execution.cache import Cache, template_names

TEXT = st.text(alphabet='aé:,"[]{}\\', max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["url", "method", "body"]), JSON)


def answer(value: Any = "hello") -> Output:
    return Output(data={"value": value}, main=value)


def test_a_result_is_cached_until_it_expires() -> None:
    cache = Cache(Caching(ttl=10))
    key = cache.key(action(url="a"))

    cache.put(key, answer(), now=100)

    assert cache.get(key, now=109.9) == Output(data={"value": "hello"}, main="hello", labels=(), cost=0.0)
    assert cache.get(key, now=110) is None
    assert len(cache) == 0


def test_the_order_of_arguments_does_not_matter() -> None:
    cache = Cache(Caching())

    assert cache.key(action(url="a", body={"x": 1, "y": 2})) == cache.key(action(body={"y": 2, "x": 1}, url="a"))


def test_one_principal_never_sees_the_result_of_another() -> None:
    cache = Cache(Caching())
    keys = {
        cache.key(action(url="a", principal=Principal(user=user, role=role)))
        for user in ("ann", "bob", 'ann","operator')
        for role in Role
    }

    assert len(keys) == 9


@given(ARGUMENTS, ARGUMENTS)
def test_two_different_calls_never_share_a_key(one: dict[str, Any], other: dict[str, Any]) -> None:
    cache = Cache(Caching())

    assert (cache.key(action(**one)) == cache.key(action(**other))) is (repr_sorted(one) == repr_sorted(other))


@given(ARGUMENTS, ARGUMENTS)
def test_calls_that_differ_in_a_named_argument_never_share_a_key(one: dict[str, Any], other: dict[str, Any]) -> None:
    cache = Cache(Caching(key_template="{{url}}:{{method}}"))

    def named(args: dict[str, Any]) -> str:
        return repr_sorted({name: args[name] for name in ("url", "method") if name in args})

    assert (cache.key(action(**one)) == cache.key(action(**other))) is (named(one) == named(other))


def repr_sorted(value: Any) -> str:
    """Equality that tells 1, 1.0 and True apart."""
    if isinstance(value, dict):
        return f"dict {sorted((key, repr_sorted(inner)) for key, inner in value.items())}"
    return repr([repr_sorted(inner) for inner in value]) if isinstance(value, list) else repr(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"url": "a:b", "method": "c"}, {"url": "a", "method": "b:c"}),
        ({"url": "a"}, {"url": "a", "method": None}),
        ({"url": "a"}, {"url": "a", "method": ""}),
        ({"url": "{{method}}", "method": "GET"}, {"url": "GET", "method": "GET"}),
        ({"url": ["a"]}, {"url": "a"}),
    ],
)
def test_values_cannot_be_chosen_so_that_two_keys_collide(one: dict[str, Any], other: dict[str, Any]) -> None:
    cache = Cache(Caching(key_template="{{url}}:{{method}}"))

    assert cache.key(action(**one)) != cache.key(action(**other))


def test_only_the_arguments_that_the_template_names_matter() -> None:
    cache = Cache(Caching(key_template="{{ url }}"))

    assert cache.key(action(url="a", trace="1")) == cache.key(action(url="a", trace="2"))


@pytest.mark.parametrize("template", ["", "constant", "{{url", "{{url}} {{", "{{a b}}", "{{url|default(1)}}"])
def test_a_template_without_arguments_is_refused(template: str) -> None:
    with pytest.raises(ToolreeveError, match="must name arguments"):
        template_names(template)


def test_changing_a_result_changes_only_that_copy() -> None:
    cache = Cache(Caching())
    output = answer([1, 2])
    key = cache.key(action())
    cache.put(key, output, now=0)

    output.main.append(3)
    first = cache.get(key, now=1)
    assert first is not None
    first.main.append(4)
    first.data["value"].append(5)

    second = cache.get(key, now=2)
    assert second is not None
    assert second.data == {"value": [1, 2]}
    assert second.main == [1, 2]


@given(JSON)
def test_a_cached_result_equals_the_original(value: Any) -> None:
    cache = Cache(Caching())
    cache.put("key", answer(value), now=0)

    kept = cache.get("key", now=1)

    assert kept is not None
    assert repr_sorted([kept.data["value"], kept.main]) == repr_sorted([value, value])


def test_the_least_recently_used_result_is_evicted_first() -> None:
    cache = Cache(Caching(max_size=2))
    for name in ("a", "b"):
        cache.put(name, answer(), now=0)
    cache.get("a", now=1)

    cache.put("c", answer(), now=2)

    assert [cache.get(name, now=3) is not None for name in ("a", "b", "c")] == [True, False, True]


def test_its_memory_is_bounded() -> None:
    cache = Cache(Caching(), max_bytes=10_000)
    for number in range(100):
        cache.put(str(number), answer("x" * 1000), now=0)
    cache.put("huge", answer("x" * 20_000), now=0)

    assert 0 < len(cache) < 10
    assert cache.get("huge", now=0) is None
    assert cache.get("99", now=0) is not None


def test_a_newer_result_replaces_the_older_one() -> None:
    cache = Cache(Caching(), max_bytes=3000)
    for number in range(50):
        cache.put("key", answer([number, "x" * 1000]), now=number)

    newest = cache.get("key", now=50)

    assert newest is not None
    assert newest.main[0] == 49


def test_a_result_that_cannot_be_copied_exactly_is_not_cached() -> None:
    cache = Cache(Caching())

    cache.put("key", answer(object()), now=0)

    assert cache.get("key", now=0) is None
