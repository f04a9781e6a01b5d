"""The `calculate` tool: arithmetic on numbers, operators and named functions.

Nothing else is ever evaluated. Every operation is checked before it is carried out, so that no expression, however
short, takes long or fills memory: the size of a power, a product or a factorial is known from its operands.
"""

import ast
import math
import operator
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.core.tool import tool
from toolreeve.tools.effects import nothing

if TYPE_CHECKING:
    from simpleeval import SimpleEval

Number = int | float

MAX_CHARACTERS = 1000
MAX_BITS = 10_000
MAX_FACTORIAL = 1000
SHOWN_CHARACTERS = 60


@tool(
    danger=DangerLevel.SAFE,
    category="utility",
    effects=nothing,
    inline=True,
    examples=({"expression": "(2 + 3) * 4 ** 2"},),
    source="toolreeve",
)
async def calculate(expression: str) -> Output:
    """Evaluate a mathematical expression: + - * / // % **, parentheses, functions such as sqrt, sin, log, round, min
    and max, and the constants pi, e and tau.

    Args:
        expression: Such as `(2 + 3) * 4 ** 2` or `sqrt(2) / 2`.
    """
    result = evaluate(expression)
    return Output(data={"expression": expression, "result": result}, main=result)


def evaluate(expression: str) -> Number:
    """Raises ToolError(CALC_ERROR) for anything that has no real, finite and reasonably small value."""
    from simpleeval import InvalidExpression

    tree = _parse(expression)
    try:
        value = _evaluator().eval(expression, previously_parsed=tree)
        return _finite(value)
    except InvalidExpression as problem:
        raise _refusal(str(problem).removeprefix("Sorry, ")) from None
    except ZeroDivisionError:
        raise _refusal("it divides by zero") from None
    except OverflowError:
        raise _refusal("the result is too large") from None
    except (ValueError, TypeError) as problem:
        raise _refusal(str(problem).lstrip("_")) from None
    except RecursionError:
        raise _refusal("it is nested too deeply") from None


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_CHARACTERS:
        raise _refusal(f"it is longer than {MAX_CHARACTERS} characters")
    if "\0" in expression:
        raise _refusal("it contains a NUL character")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as problem:
        raise _refusal(f"{problem.msg} at character {problem.offset or 1}") from None
    except (ValueError, RecursionError, MemoryError):
        raise _refusal("it is nested too deeply or contains a number that is too long") from None
    for node in ast.walk(tree):
        _check(node)
    return tree


def _check(node: ast.AST) -> None:
    """Refuse what is not arithmetic with a message of our own, and literals that are not numbers."""
    match node:
        case ast.Constant(value=value):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _refusal(f"{_shown(repr(value))} is not a number")
            _finite(value)
        case ast.Name(id=name) if name not in CONSTANTS and name not in FUNCTIONS:
            raise _refusal(f"{_shown(name)!r} is unknown; known are {', '.join([*CONSTANTS, *FUNCTIONS])}")
        case ast.Call(func=function, keywords=keywords):
            if keywords or not isinstance(function, ast.Name) or function.id in CONSTANTS:
                raise _refusal("functions are called as name(number, …)")
        case ast.BinOp(op=ast.BitXor()):
            raise _refusal("^ is not arithmetic; a power is written **")
        case ast.BinOp(op=op) | ast.UnaryOp(op=op):
            if type(op) not in OPERATORS:
                raise _refusal(f"the operator {type(op).__name__} is not arithmetic")
        case ast.expr() if type(node) not in (ast.Name, ast.Call):
            raise _refusal(f"{type(node).__name__} is not arithmetic")


@cache
def _evaluator() -> "SimpleEval":
    from simpleeval import SimpleEval

    evaluator = SimpleEval(operators=dict(OPERATORS), functions=dict(FUNCTIONS), names=dict(CONSTANTS))
    arithmetic = (ast.Constant, ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)
    evaluator.nodes = {kind: evaluate for kind, evaluate in evaluator.nodes.items() if kind in arithmetic}
    return evaluator


def _refusal(reason: str) -> ToolError:
    return ToolError(ErrorCode.CALC_ERROR, f"cannot calculate: {reason}")


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"


def _bits(value: Number) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _sized(value: Number) -> Number:
    if _bits(value) > MAX_BITS:
        raise _refusal(f"a number grows beyond {MAX_BITS} bits")
    return value


def _finite(value: object) -> Number:
    """The value if it is a real number. `isfinite` is not called on integers, which it would overflow."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _refusal("the result is not a real number")
    if isinstance(value, float) and not math.isfinite(value):
        raise _refusal("the result is too large" if math.isinf(value) else "the result is not a number")
    return _sized(value)


def _multiply(left: Number, right: Number) -> Number:
    if _bits(left) + _bits(right) > MAX_BITS + 1:
        raise _refusal(f"a number grows beyond {MAX_BITS} bits")
    return _finite(left * right)


def _power(base: Number, exponent: Number) -> Number:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and exponent * math.log2(abs(base)) > MAX_BITS:
        raise _refusal(f"a number grows beyond {MAX_BITS} bits")
    return _finite(base**exponent)


def _factorial(number: Number) -> int:
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int) or not 0 <= number <= MAX_FACTORIAL:
        raise _refusal(f"factorial takes a whole number from 0 to {MAX_FACTORIAL}")
    return math.factorial(number)


def _choose(total: Number, chosen: Number) -> int:
    _require_small(total, chosen, name="comb")
    return math.comb(int(total), int(chosen))


def _arrange(total: Number, chosen: Number) -> int:
    _require_small(total, chosen, name="perm")
    return math.perm(int(total), int(chosen))


def _require_small(*numbers: Number, name: str) -> None:
    if any(number != int(number) or not 0 <= number <= MAX_FACTORIAL for number in numbers):
        raise _refusal(f"{name} takes whole numbers from 0 to {MAX_FACTORIAL}")


def _multiple(*numbers: Number) -> int:
    product = 1
    for number in numbers:
        if not isinstance(number, int):
            raise _refusal("lcm takes whole numbers")
        product = int(_sized(math.lcm(product, number)))
    return product


def _round(number: Number, digits: Number = 0) -> Number:
    """Without digits, or with none, a whole number."""
    if not isinstance(digits, int) or abs(digits) > MAX_FACTORIAL:
        raise _refusal(f"round takes a whole number of digits up to {MAX_FACTORIAL}")
    return round(number, digits) if digits else round(number)


def _checked(operation: Callable[..., Number]) -> Callable[..., Number]:
    """The operation with every result checked before another operation uses it."""
    return lambda *operands: _finite(operation(*operands))


_PLAIN: tuple[Callable[..., Number], ...] = (
    *(math.sqrt, math.cbrt, math.exp, math.expm1, math.log, math.log2, math.log10, math.log1p),
    *(math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.atan2, math.degrees, math.radians),
    *(math.sinh, math.cosh, math.tanh, math.asinh, math.acosh, math.atanh, math.hypot, math.copysign),
    *(math.floor, math.ceil, math.trunc, math.fmod, math.gcd, math.gamma, math.lgamma, math.erf, math.erfc),
)

OPERATORS: dict[type[ast.AST], Callable[..., Number]] = {
    ast.Add: _checked(operator.add),
    ast.Sub: _checked(operator.sub),
    ast.Mult: _multiply,
    ast.Div: _checked(operator.truediv),
    ast.FloorDiv: _checked(operator.floordiv),
    ast.Mod: _checked(operator.mod),
    ast.Pow: _power,
    ast.USub: _checked(operator.neg),
    ast.UAdd: _checked(operator.pos),
}

FUNCTIONS: dict[str, Callable[..., Number]] = {
    "abs": _checked(abs),
    "round": _checked(_round),
    "min": _checked(min),
    "max": _checked(max),
    "sum": _checked(lambda *numbers: sum(numbers)),
    "pow": _power,
    "factorial": _checked(_factorial),
    "comb": _checked(_choose),
    "perm": _checked(_arrange),
    "lcm": _multiple,
    **{function.__name__: _checked(function) for function in _PLAIN},
}

CONSTANTS: dict[str, Number] = {"pi": math.pi, "e": math.e, "tau": math.tau}
