"""Tools: the protocol, the `@tool` decorator and the bound form.

A tool has a name, a description, a schema and an `execute`, or is a function under `@tool`. Whatever its origin, the
road carries it as a `BoundTool`: a spec with what is known about it, and a `run`.
"""

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

from toolreeve.core import json
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.files import Files
from toolreeve.core.limits import UNLIMITED, Caching, CircuitBreaker, Limits, RateLimit, Retry
from toolreeve.core.result import Failure, Output, Success, ToolResult
from toolreeve.core.schema import Schema
from toolreeve.core.signature import Signature, read_signature
from toolreeve.core.threads import run_interruptibly

Arguments = Mapping[str, Any]
Run = Callable[[dict[str, Any], Context], Awaitable[Output]]
AssessDanger = Callable[[Arguments], DangerLevel]
ListEffects = Callable[[Arguments, Files], Sequence[Effect]]
Screen = Callable[[Arguments, Context], None]
"""Raises ToolError for a call that the tool refuses whatever policy and approval decide."""


class Rationale(NamedTuple):
    """Why a call has its danger level, in a few words; may be empty.

    `parts` are the parts of the call, each with the reason why its effect is unknown; empty if it is known.
    """

    reason: str
    parts: tuple[tuple[str, str], ...] = ()


FindRationale = Callable[[Arguments], Rationale]


@runtime_checkable
class Tool(Protocol):
    """The tool protocol: structural, no base class."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def input_schema(self) -> dict[str, Any]: ...

    async def execute(self, tool_input: dict[str, Any]) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What is known about a tool before it runs. `source` names who registered it; `server` is None for local tools.

    `confirmation` is a question that its author wants a person to answer before each call; None for no question.
    `declared` is the definition of an upstream tool, as its server sent it. A `hidden` tool can be called and is
    subject to policy like any other, but no door lists it.
    """

    name: str
    description: str
    input: Mapping[str, Any]
    output: Mapping[str, Any] | None = None
    danger: DangerLevel = DangerLevel.HIGH
    category: str = "custom"
    read_only: bool = False
    idempotent: bool = False
    limits: Limits = UNLIMITED
    tags: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    source: str = "unknown"
    server: str | None = None
    trusted: bool = True
    estimated_cost: float = 0.0
    confirmation: str | None = None
    declared: Mapping[str, Any] | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTool:
    """A tool ready for the road. `inline` promises that `run` ends promptly when cancelled and never blocks the loop
    for long, so that it needs no separate task. `blocking` says that `screen` and `list_effects` wait for a database,
    so that the road calls them in a thread."""

    spec: ToolSpec
    run: Run
    input: Schema
    assess: AssessDanger | None = None
    list_effects: ListEffects | None = None
    inline: bool = False
    screen: Screen | None = None
    grounds: FindRationale | None = None
    blocking: bool = False

    def danger(self, args: Arguments) -> DangerLevel:
        return self.spec.danger if self.assess is None else self.assess(args)

    def effects(self, args: Arguments, files: Files) -> Sequence[Effect]:
        return () if self.list_effects is None else self.list_effects(args, files)


@dataclass(frozen=True, kw_only=True)
class FunctionTool:
    """A Python function as a tool. Calling it calls the function directly; `Toolreeve.call` takes the road."""

    function: Callable[..., Any]
    signature: Signature
    spec: ToolSpec
    assess: AssessDanger | None = None
    list_effects: ListEffects | None = None
    inline: bool = False
    screen: Screen | None = None
    grounds: FindRationale | None = None
    blocking: bool = False

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def description(self) -> str:
        return self.spec.description

    @property
    def input_schema(self) -> dict[str, Any]:
        return dict(self.spec.input)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    async def execute(self, tool_input: dict[str, Any]) -> Any:
        return await self._call(Schema(self.spec.input).parse(tool_input), None)

    @property
    def run(self) -> Run:
        """What the road calls: the function itself if nothing needs converting."""
        function = self.function
        context_name = self.signature.context
        if not self.is_async or self.signature.converts:

            async def run(args: dict[str, Any], context: Context) -> Output:
                return as_output(await self._call(args, context))

        elif context_name is None:

            async def run(args: dict[str, Any], context: Context) -> Output:  # noqa: ARG001
                return as_output(await function(**args))

        else:

            async def run(args: dict[str, Any], context: Context) -> Output:
                return as_output(await function(**args, **{context_name: context}))

        return run

    async def _call(self, args: dict[str, Any], context: Context | None) -> Any:
        kwargs = args
        if self.signature.converts:
            kwargs = {name: self._convert(name, value) for name, value in args.items()}
        if self.signature.context:
            kwargs = {**kwargs, self.signature.context: context}
        if self.is_async:
            return await self.function(**kwargs)
        return await run_interruptibly(partial(self.function, **kwargs))

    def _convert(self, name: str, value: Any) -> Any:
        convert = self.signature.converts.get(name)
        if convert is None:
            return value
        try:
            return convert(value)
        except ValueError as problem:
            raise ToolError(ErrorCode.INVALID_PARAMS, f"/{name}: {problem}") from None


_Decorator = Callable[[Callable[..., Any]], FunctionTool]


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    danger: DangerLevel | AssessDanger = ...,
    category: str = ...,
    read_only: bool | None = ...,
    idempotent: bool | None = ...,
    timeout: float | None = ...,
    retry: Retry | None = ...,
    circuit_breaker: CircuitBreaker | None = ...,
    caching: Caching | None = ...,
    rate: RateLimit | None = ...,
    concurrency: int | None = ...,
    effects: ListEffects | None = ...,
    input_schema: Mapping[str, Any] | None = ...,
    output_schema: Mapping[str, Any] | None = ...,
    tags: Sequence[str] = ...,
    examples: Sequence[Mapping[str, Any]] = ...,
    estimated_cost: float = ...,
    inline: bool = ...,
    blocking: bool = ...,
    screen: Screen | None = ...,
    source: str | None = ...,
) -> _Decorator: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    danger: DangerLevel | AssessDanger = DangerLevel.MEDIUM,
    category: str = "custom",
    read_only: bool | None = None,
    idempotent: bool | None = None,
    timeout: float | None = None,
    retry: Retry | None = None,
    circuit_breaker: CircuitBreaker | None = None,
    caching: Caching | None = None,
    rate: RateLimit | None = None,
    concurrency: int | None = None,
    effects: ListEffects | None = None,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    examples: Sequence[Mapping[str, Any]] = (),
    estimated_cost: float = 0.0,
    inline: bool = False,
    blocking: bool = False,
    screen: Screen | None = None,
    source: str | None = None,
) -> FunctionTool | _Decorator:
    """Make a function a tool. `danger` is a level, or a function of the arguments that returns one.

    `read_only` defaults to whether the danger is SAFE; `idempotent` defaults to `read_only`.
    """

    limits = Limits(
        timeout=timeout,
        retry=retry,
        circuit_breaker=circuit_breaker,
        caching=caching,
        rate=rate,
        concurrency=concurrency,
    )

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        signature = read_signature(function)
        static = danger if isinstance(danger, DangerLevel) else DangerLevel.HIGH
        reads = static is DangerLevel.SAFE if read_only is None else read_only
        spec = ToolSpec(
            name=name or function.__name__,
            description=description or signature.description or function.__name__,
            input=input_schema or signature.schema,
            output=output_schema,
            danger=static,
            category=category,
            read_only=reads,
            idempotent=reads if idempotent is None else idempotent,
            limits=UNLIMITED if limits == UNLIMITED else limits,
            tags=tuple(tags),
            examples=tuple(examples),
            source=source or f"{function.__module__}.{function.__qualname__}",
            estimated_cost=estimated_cost,
        )
        assess = None if isinstance(danger, DangerLevel) else danger
        return FunctionTool(
            function=function,
            signature=signature,
            spec=spec,
            assess=assess,
            list_effects=effects,
            inline=inline,
            blocking=blocking,
            screen=screen,
        )

    return decorate if function is None else decorate(function)


def mcp_tool(
    *,
    name: str,
    description: str,
    danger_level: DangerLevel = DangerLevel.MEDIUM,
    parameters: Mapping[str, Mapping[str, Any]],
) -> _Decorator:
    """The explicit form: parameters are listed; those without a default in the function are required."""

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        defaults = {
            key for key, value in inspect.signature(function).parameters.items() if value.default is not value.empty
        }
        schema = {
            "type": "object",
            "properties": {key: dict(value) for key, value in parameters.items()},
            "required": [key for key in parameters if key not in defaults],
            "additionalProperties": False,
        }
        return tool(name=name, description=description, danger=danger_level, input_schema=schema)(function)

    return decorate


def bind(candidate: Any) -> BoundTool:
    """Any accepted kind of tool, made ready for the road. Raises ToolreeveError for anything else."""
    if isinstance(candidate, BoundTool):
        return candidate
    if isinstance(candidate, FunctionTool):
        return _ready(candidate.spec, candidate.run, candidate)
    if isinstance(candidate, type):
        raise ToolreeveError(f"{candidate.__qualname__} is a class; pass an instance of it")
    if isinstance(candidate, Tool):
        return _bind_object(candidate)
    if callable(candidate):
        return bind(tool(candidate))
    missing = [part for part in ("name", "description", "input_schema", "execute") if not hasattr(candidate, part)]
    raise ToolreeveError(f"{candidate!r} is not a tool: it has no {', '.join(missing)}")


def _bind_object(candidate: Tool) -> BoundTool:
    """A structural tool; attributes beyond the protocol are honoured, and without a danger level it is HIGH."""

    async def run(args: dict[str, Any], _: Context) -> Output:
        return as_output(await candidate.execute(args))

    danger = getattr(candidate, "danger", DangerLevel.HIGH)
    read_only = bool(getattr(candidate, "read_only", danger is DangerLevel.SAFE))
    kind = type(candidate)
    spec = ToolSpec(
        name=candidate.name,
        description=candidate.description,
        input=candidate.input_schema,
        danger=danger,
        category=getattr(candidate, "category", "custom"),
        read_only=read_only,
        idempotent=bool(getattr(candidate, "idempotent", read_only)),
        limits=getattr(candidate, "limits", UNLIMITED),
        source=f"{kind.__module__}.{kind.__qualname__}",
    )
    return _ready(spec, run, None)


def _ready(spec: ToolSpec, run: Run, function: FunctionTool | None) -> BoundTool:
    if not isinstance(spec.input, Mapping) or spec.input.get("type", "object") != "object":
        raise ToolreeveError(f"{spec.source}: input_schema of {spec.name!r} must describe an object")
    return BoundTool(
        spec=spec,
        run=run,
        input=Schema(spec.input),
        assess=function.assess if function else None,
        list_effects=function.list_effects if function else None,
        inline=function.inline if function else False,
        screen=function.screen if function else None,
        grounds=function.grounds if function else None,
        blocking=function.blocking if function else False,
    )


def as_output(returned: Any) -> Output:
    """A tool's return value as Output. Raises ToolError for a reported failure or a value that is not JSON."""
    match returned:
        case Output():
            return returned
        case ToolResult(outcome=Success(data, main)):
            return Output(data=data, main=main)
        case ToolResult(outcome=Failure() as failure):
            raise ToolError(failure.code, failure.message, suggestions=failure.suggestions, detail=failure.detail)
        case str():
            output = Output(data={"output": returned}, main=returned)
        case Mapping():
            output = _from_mapping(returned)
        case None:
            return Output(data={})
        case _ if hasattr(returned, "model_dump"):
            output = Output(data=returned.model_dump(mode="json"))
        case _ if dataclasses.is_dataclass(returned) and not isinstance(returned, type):
            output = Output(data=dataclasses.asdict(returned))
        case _:
            output = Output(data={"output": returned}, main=returned)
    _require_json(output.data)
    return output


def _from_mapping(returned: Mapping[str, Any]) -> Output:
    if returned.get("success") is False and returned.get("error"):
        error = returned["error"]
        message = error.get("message", str(error)) if isinstance(error, Mapping) else str(error)
        raise ToolError(ErrorCode.TOOL_EXEC, message, detail=error if isinstance(error, Mapping) else None)
    return Output(data=returned, main=returned.get("output"))


def _require_json(data: Mapping[str, Any]) -> None:
    try:
        json.dumps(data)
    except TypeError as problem:
        raise ToolError(ErrorCode.TOOL_EXEC, f"the tool returned a value that is not JSON: {problem}") from None
