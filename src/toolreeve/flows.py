"""Flows: several calls, in parallel or in sequence.

Flows stand above the road: each step is a call like any other. A reference is resolved once, as data: text in a tool's
output that looks like a reference stays text.
"""

import asyncio
import copy
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolreeve.core import json
from toolreeve.core.call import ToolCall, new_id
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.result import Failure, Meta, ToolResult, new_result
from toolreeve.core.schema import MAX_CHARACTERS, MAX_DEPTH

Call = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]
Run = Callable[[ToolCall], Awaitable[ToolResult]]
Request = ToolCall | Mapping[str, Any]

_NAME_KEYS = ("tool", "tool_name", "name")
_ARGS_KEYS = ("args", "params", "arguments")


@dataclass(frozen=True, slots=True)
class FlowStep:
    """`spelled_out` is the call as the caller made it, with its own session, principal and time limit."""

    tool: str
    args: Mapping[str, Any]
    spelled_out: ToolCall | None = None


async def batch(
    call: Call, requests: Sequence[Request], *, run: Run | None = None, concurrency: int = 8
) -> list[ToolResult]:
    """Run the calls in parallel, at most `concurrency` at a time. Results are in the order of the requests.

    A step that is a ToolCall goes to `run` unchanged, if `run` is given.
    """
    if concurrency < 1:
        raise ToolreeveError(f"concurrency must be at least 1, got {concurrency!r}")
    steps = read_steps(requests)
    results: list[ToolResult | None] = [None] * len(steps)
    waiting = iter(enumerate(steps))

    async def work() -> None:
        for index, step in waiting:
            results[index] = await _run_step(step, step.args, call, run)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(steps))):
                group.create_task(work())
    except BaseExceptionGroup as problems:
        # The road turns failures into results; an exception means the library was misused, and one report is enough.
        raise problems.exceptions[0] from None
    return [result for result in results if result is not None]


async def chain(
    call: Call, steps: Sequence[Request], *, run: Run | None = None, stop_on_error: bool = True
) -> list[ToolResult]:
    """Run the calls one after another. With `stop_on_error` the first failure is the last result."""
    done: list[ToolResult] = []
    for step in read_steps(steps):
        try:
            args = References(done).resolve(step.args)
        except ToolError as problem:
            result = _unresolved(step, problem)
        else:
            result = await _run_step(step, args, call, run)
        done.append(result)
        if stop_on_error and not result.success:
            break
    return done


async def _run_step(step: FlowStep, args: Mapping[str, Any], call: Call, run: Run | None) -> ToolResult:
    if step.spelled_out is None or run is None:
        return await call(step.tool, args)
    return await run(replace(step.spelled_out, args=args))


def read_steps(requests: Sequence[Request]) -> list[FlowStep]:
    """Parse every step before the first one runs. Raises ToolreeveError for a malformed one."""
    return [_read_step(request, index) for index, request in enumerate(requests)]


def _read_step(request: Request, index: int) -> FlowStep:
    if isinstance(request, ToolCall):
        return FlowStep(request.tool, request.args, request)
    if not isinstance(request, Mapping):
        raise ToolreeveError(f"step {index} must be a mapping or a ToolCall, got {type(request).__name__}")
    unknown = [key for key in request if key not in (*_NAME_KEYS, *_ARGS_KEYS)]
    if unknown:
        raise ToolreeveError(f"step {index} has the unknown key {unknown[0]!r}; a step is {{'tool': …, 'args': {{…}}}}")
    tool = _one_of(request, _NAME_KEYS, index)
    args = _one_of(request, _ARGS_KEYS, index)
    if not isinstance(tool, str):
        raise ToolreeveError(f"step {index} names no tool; a step is {{'tool': …, 'args': {{…}}}}")
    if not isinstance(args, Mapping | None):
        raise ToolreeveError(f"step {index}: the arguments must be a mapping, got {type(args).__name__}")
    return FlowStep(tool, args or {})


def _one_of(request: Mapping[str, Any], keys: Sequence[str], index: int) -> Any:
    given = [key for key in keys if key in request]
    if len(given) > 1:
        raise ToolreeveError(f"step {index} has both {given[0]!r} and {given[1]!r}; keep one of them")
    return request[given[0]] if given else None


def _unresolved(step: FlowStep, problem: ToolError) -> ToolResult:
    failure = Failure(problem.code, problem.message, problem.suggestions, problem.detail)
    return new_result(failure, Meta(call_id=new_id(), tool=step.tool, session="default"))


# Text in braces is a reference only if it begins with one of the two words; other templates pass through untouched.
_REFERENCE = re.compile(r"\{\{\s*((?:previous|steps)\b[^{}]*)\}\}")
_ROOT = re.compile(r"previous|steps\[(\d{1,9})\]")
_PART = re.compile(r"""\.([^\s.\[\]{}"]+)|\[(-?\d{1,9})\]|\["([^"]*)"\]""")


class References:
    """Resolves references to earlier results in the arguments of the next step."""

    def __init__(self, done: Sequence[ToolResult]) -> None:
        self._done = done
        self._flat: dict[int, dict[str, Any]] = {}
        self._room = MAX_CHARACTERS

    def resolve(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ToolError(INVALID_PARAMS) for a reference to a step or field that does not exist."""
        return {key: self._value(value, 1) for key, value in args.items()}

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value) if "{{" in value else value
        if depth >= MAX_DEPTH:
            return value  # deeper than the road accepts: validation reports it
        if isinstance(value, Mapping):
            return {key: self._value(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._value(inner, depth + 1) for inner in value]
        return value

    def _text(self, text: str) -> Any:
        """A reference alone becomes the value itself; one within text becomes its text."""
        if whole := _REFERENCE.fullmatch(text.strip()):
            return copy.deepcopy(self._look_up(whole[1].rstrip()))
        return _REFERENCE.sub(self._substitute, text)

    def _substitute(self, found: re.Match[str]) -> str:
        value = self._look_up(found[1].rstrip())
        text = value if isinstance(value, str) else json.dumps(value).decode()
        self._room -= len(text)
        if self._room < 0:
            raise _refusal(found[1], f"the text would grow beyond {MAX_CHARACTERS} characters")
        return text

    def _look_up(self, reference: str) -> Any:
        root = _ROOT.match(reference)
        if root is None:
            raise _refusal(reference, "write {{previous.field}} or {{steps[0].field}}")
        index = len(self._done) - 1 if root[1] is None else int(root[1])
        if not 0 <= index < len(self._done):
            raise _refusal(reference, _steps_so_far(len(self._done)))
        parts = list(_parts(reference, root.end()))
        if not parts:
            return self._done[index].output
        value: Any = self._fields(index)
        for part in parts:
            value = _inside(value, part, reference)
        return value

    def _fields(self, index: int) -> dict[str, Any]:
        if index not in self._flat:
            self._flat[index] = self._done[index].to_flat()
        return self._flat[index]


def _parts(reference: str, start: int) -> Iterator[str | int]:
    """`.links[2]["a b"]` as "links", 2, "a b"."""
    while start < len(reference):
        part = _PART.match(reference, start)
        if part is None:
            raise _refusal(reference, f"{reference[start : start + 20]!r} is not a field such as .name or [0]")
        name, index, quoted = part.groups()
        if index is not None:
            yield int(index)
        else:
            yield name or quoted or ""
        start = part.end()


def _inside(value: Any, part: str | int, reference: str) -> Any:
    if isinstance(part, str) and isinstance(value, Mapping):
        if part in value:
            return value[part]
        raise _refusal(reference, f"there is no {part!r}; there are {_listed(value)}")
    if isinstance(part, int) and isinstance(value, Sequence) and not isinstance(value, str):
        if -len(value) <= part < len(value):
            return value[part]
        raise _refusal(reference, f"there is no [{part}] in a list of {len(value)}")
    raise _refusal(reference, f"a value of type {type(value).__name__} has no {part!r}")


def _listed(value: Mapping[str, Any]) -> str:
    names = [str(name)[:60] for name in value]
    if not names:
        return "none"
    more = f" and {len(names) - 30} more" if len(names) > 30 else ""
    return ", ".join(names[:30]) + more


def _steps_so_far(count: int) -> str:
    if count == 0:
        return "no step came before this one"
    if count == 1:
        return "only steps[0] came before"
    return f"only steps[0] to steps[{count - 1}] came before"


def _refusal(reference: str, reason: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PARAMS, f"{{{{{reference[:100]}}}}} refers to nothing: {reason}")
