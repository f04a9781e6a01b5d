import math
import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.tools.calculate import CONSTANTS, FUNCTIONS, MAX_CHARACTERS, calculate, evaluate


def refusal(expression: str) -> str:
    with pytest.raises(ToolError) as raised:
        evaluate(expression)
    assert raised.value.code is ErrorCode.CALC_ERROR
    return raised.value.message.removeprefix("cannot calculate: ")


def outcome(expression: str) -> float | ToolError:
    try:
        return evaluate(expression)
    except ToolError as refused:
        return refused


async def test_the_documented_example_gives_the_documented_answer() -> None:
    output = await calculate("(2 + 3) * 4 ** 2")

    assert output.data == {"expression": "(2 + 3) * 4 ** 2", "result": 80}
    assert output.main == 80


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("-7 // 2", -4),
        ("7 % -3", -2),
        ("2 ** -1", 0.5),
        ("--3", 3),
        ("1_000 + 0x10", 1016),
        (" 1 + 1 ", 2),
        ("sqrt(2) / 2", math.sqrt(2) / 2),
        ("round(2.567, 1)", 2.6),
        ("round(2.5)", 2),
        ("min(3, 1, 2) + max(1, 2)", 3),
        ("factorial(5) + comb(5, 2) + perm(5, 2)", 150),
        ("gcd(12, 18) + lcm(4, 6)", 18),
        ("sin(pi / 2) + cos(0)", 2.0),
        ("log(e) + log10(100) + log2(8)", 6.0),
        ("log(10 ** 400)", math.log(10**400)),
        ("2 ** 100", 2**100),
        ("3 ** 6000", 3**6000),
        ("2 ** -100000000000", 0.0),
        ("(-1) ** 1000000000001", -1),
        ("+".join(["12"] * 300), 3600),
    ],
)
def test_it_calculates(expression: str, value: float) -> None:
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("9**9**9", "a number grows beyond 10000 bits"),
        ("2**10000000", "a number grows beyond 10000 bits"),
        ("(10**3000) * (10**3000)", "a number grows beyond 10000 bits"),
        ("lcm(2**9000, 3**4000)", "a number grows beyond 10000 bits"),
        ("9**99999**9999", "a number grows beyond 10000 bits"),
        ("9" * MAX_CHARACTERS + "9", "it is longer than 1000 characters"),
        ("factorial(100000)", "factorial takes a whole number from 0 to 1000"),
        ("comb(10**9, 10**8)", "comb takes whole numbers from 0 to 1000"),
        ("round(1, 10**9)", "round takes a whole number of digits up to 1000"),
        ("1e308 * 10", "the result is too large"),
        ("1e999", "the result is too large"),
        ("exp(1000)", "the result is too large"),
        ("10 ** 400 * 1.0", "the result is too large"),
        ("1e999 - 1e999", "the result is too large"),
        ("1 / 0", "it divides by zero"),
        ("1 % 0", "it divides by zero"),
        ("0 ** -1", "it divides by zero"),
        ("(-8) ** 0.5", "the result is not a real number"),
        ("sin", "the result is not a real number"),
        ("2 ^ 3", "^ is not arithmetic; a power is written **"),
        ("pow(2)", "power() missing 1 required positional argument: 'exponent'"),
    ],
)
def test_what_has_no_sensible_value_is_refused_at_once_and_says_why(expression: str, reason: str) -> None:
    assert refusal(expression) == reason


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('id')",
        "(1).__class__",
        "sin.__self__",
        "'a' * 3",
        "f'{1}'",
        "b'a'",
        "[1, 2]",
        "(1, 2)",
        "{1: 2}",
        "{1}",
        "[x for x in (1,)]",
        "lambda: 1",
        "(lambda: 1)()",
        "min(*[1, 2])",
        "max(1, key=abs)",
        "max(1, 2)[0]",
        "1 if 1 else 2",
        "1 < 2",
        "1 and 2",
        "not 1",
        "~1",
        "1 << 100000",
        "1 | 2",
        "x",
        "x := 1",
        "x = 1",
        "import os",
        "1; 2",
        "1\n2",
        "True",
        "None",
        "...",
        "1j",
        "pi(1)",
        "sin(cos)",
        "yield 1",
        "await 1",
        "",
        "   ",
        "\0",
        "\ud800",
        "5!",
    ],
)
def test_nothing_but_arithmetic_is_evaluated(expression: str) -> None:
    assert refusal(expression)


@pytest.mark.parametrize("expression", ["(" * 499 + "1" + ")" * 499, "-" * 999 + "1", "abs(" * 190 + "1" + ")" * 190])
def test_deep_nesting_is_an_answer_or_a_refusal_never_a_crash(expression: str) -> None:
    match outcome(expression):
        case ToolError() as refused:
            assert "nested" in refused.message
        case value:
            assert abs(value) == 1


NAMES = st.sampled_from([*FUNCTIONS, *CONSTANTS, "x", "__import__", "True", "print"])
TOKENS = st.one_of(
    st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "(", ")", ",", "(", ")", ".", "[", "]", "'", " ", "if", "^"]),
    st.integers(min_value=0, max_value=99).map(str),
    st.floats(min_value=0, allow_infinity=False).map(str),
    NAMES,
)


@given(st.lists(TOKENS, max_size=30).map(" ".join))
def test_any_text_gives_a_real_finite_number_or_a_refusal(expression: str) -> None:
    match outcome(expression):
        case ToolError() as refused:
            assert refused.code is ErrorCode.CALC_ERROR
        case value:
            assert type(value) in (int, float)
            assert not isinstance(value, float) or math.isfinite(value)


@given(st.text(max_size=40))
def test_any_characters_at_all_give_a_number_or_a_refusal(expression: str) -> None:
    assert isinstance(outcome(expression), int | float | ToolError)


OPERATIONS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


def combined(parts: Any) -> Any:
    return st.tuples(parts, st.sampled_from(list(OPERATIONS)), parts)


TREES = st.recursive(st.integers(-20, 20) | st.floats(-20, 20).map(lambda number: round(number, 3)), combined)


def written(tree: Any) -> str:
    return f"({written(tree[0])} {tree[1]} {written(tree[2])})" if isinstance(tree, tuple) else f"({tree})"


def reckoned(tree: Any) -> Any:
    return OPERATIONS[tree[1]](reckoned(tree[0]), reckoned(tree[2])) if isinstance(tree, tuple) else tree


@given(TREES.filter(lambda tree: len(written(tree)) <= MAX_CHARACTERS))
def test_it_agrees_with_python(tree: Any) -> None:
    try:
        expected = reckoned(tree)
    except ZeroDivisionError:
        assert refusal(written(tree)) == "it divides by zero"
    else:
        value = evaluate(written(tree))
        assert (value, type(value)) == (expected, type(expected))
