"""Tools: the protocol, the `@tool` decorator and the bound form.

A tool has a name, a description, a schema and an `execute`, or is a function under `@tool`. Whatever its origin, the
road carries it as a `BoundTool`: a spec with what is known about it, and a `run`.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MethodType
from typing import (
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
    runtime_checkable,
)

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.files import Files
from toolreeve.core.limits import UNLIMITED, Caching, CircuitBreaker, Limits, RateLimit, Retry
from toolreeve.core.result import Output
from toolreeve.core.returned import as_output
from toolreeve.core.schema import Schema
from toolreeve.core.signature import FunctionSignature, check_input, own_name_of, read_signature
from toolreeve.core.suggest import hint_similar
from toolreeve.core.threads import run_interruptibly

P = ParamSpec("P")
R = TypeVar("R")
P2 = ParamSpec("P2")
R_co = TypeVar("R_co", covariant=True)
Receiver = TypeVar("Receiver")
Arguments = Mapping[str, Any]
Run = Callable[[dict[str, Any], Context], Awaitable[Output]]
AssessDanger = Callable[[Arguments], DangerLevel]
Danger = DangerLevel | str | AssessDanger
"""A level, its name, or a function of the arguments that returns a level."""
ListEffects = Callable[[Arguments, Files], Sequence[Effect]]
ShowPreview = Callable[[Arguments], str]
"""What a call would send or create, as its recipient will see it; shown to the person who is asked."""
Screen = Callable[[Arguments, Context], None]
"""Raises ToolError for a call that the tool refuses whatever policy and approval decide."""


class Rationale(NamedTuple):
    """Why a call has its danger level, in a few words; may be empty.

    `parts` are the parts of the call, each with the reason why its effect is unknown; empty if it is known. `analysis`
    is the policy's own analysis of a command.
    """

    reason: str
    parts: tuple[tuple[str, str], ...] = ()
    analysis: object = None


FindRationale = Callable[[Arguments], Rationale]


@runtime_checkable
class Tool(Protocol):
    """The tool protocol: structural, no base class."""

    @property
    def name(self) -> str:
        """The name to call it by."""
        ...

    @property
    def description(self) -> str:
        """What it does, for the model."""
        ...

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        ...

    async def execute(self, tool_input: dict[str, Any]) -> Any:
        """Run it with valid arguments."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolSpec:
    """What is known about a tool before it runs. `source` names who registered it; `server` is None for local tools.

    `confirmation` is a question that its author wants a person to answer before each call; None for no question.
    `declared` is the definition of an upstream tool, as its server sent it. A `hidden` tool can be called and is
    subject to policy like any other, but no door lists it. What an `undoable` tool changes is kept for undo. The
    programs of a `confinable` tool run in the sandbox, where the verdict chooses their confinement.
    `title` is a name for people.
    """

    name: str
    description: str
    input: Mapping[str, Any]
    title: str = ""
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
    undoable: bool = False
    confinable: bool = False

    def __repr__(self) -> str:
        return f"<tool {self.name!r}: {self.danger.value}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
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
    preview: ShowPreview | None = None

    def __repr__(self) -> str:
        return repr(self.spec)

    def danger(self, args: Arguments) -> DangerLevel:
        return self.spec.danger if self.assess is None else self.assess(args)

    def effects(self, args: Arguments, files: Files) -> Sequence[Effect]:
        return () if self.list_effects is None else self.list_effects(args, files)


@dataclass(frozen=True, kw_only=True, repr=False)
class FunctionTool(Generic[P, R_co]):
    """A Python function as a tool. Calling it calls the function directly; `Toolreeve.call` takes the road.

    In a class body it is a method: `instance.method` is the tool, bound to the instance. `unbound` says that the
    function still needs one.
    """

    function: Callable[P, R_co]
    signature: FunctionSignature
    spec: ToolSpec
    assess: AssessDanger | None = None
    list_effects: ListEffects | None = None
    inline: bool = False
    screen: Screen | None = None
    grounds: FindRationale | None = None
    blocking: bool = False
    preview: ShowPreview | None = None
    unbound: bool = False

    def __repr__(self) -> str:
        return repr(self.spec)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: "FunctionTool[Concatenate[Receiver, P2], R]", instance: Receiver, owner: type | None = None
    ) -> "FunctionTool[P2, R]": ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or not self.unbound:
            return self
        return replace(self, function=MethodType(self.function, instance), unbound=False)

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

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        return self.function(*args, **kwargs)

    async def execute(self, tool_input: dict[str, Any]) -> Any:
        return await self._call(Schema(self.spec.input).parse(tool_input), None)

    def convert(self, args: Arguments) -> dict[str, Any]:
        """The arguments as instances of the parameters' types. Raises ToolError(INVALID_PARAMS)."""
        converts = self.signature.converts
        return {name: converts[name](value) if name in converts else value for name, value in args.items()}

    @property
    def run(self) -> Run:
        """What the road calls: the function itself if nothing needs converting."""
        function: Callable[..., Any] = self.function
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
        function: Callable[..., Any] = self.function
        kwargs = self.convert(args) if self.signature.converts else args
        if self.signature.context:
            kwargs = {**kwargs, self.signature.context: context}
        if self.is_async:
            return await function(**kwargs)
        return await run_interruptibly(partial(function, **kwargs))


AnyFunctionTool = FunctionTool[..., Any]


class ToolDecorator(Protocol):
    """What `@tool(…)` and `@mcp_tool(…)` return."""

    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    danger: Danger = ...,
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
    preview: ShowPreview | None = ...,
    source: str | None = ...,
) -> ToolDecorator: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    danger: Danger = DangerLevel.MEDIUM,
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
    preview: ShowPreview | None = None,
    source: str | None = None,
) -> FunctionTool[..., Any] | ToolDecorator:
    """Make a function a tool.

    `danger` is a level, its name such as "safe", or a function of the arguments that returns a level. `read_only`
    defaults to whether the danger is SAFE; `idempotent` defaults to `read_only`. Parameters and the return value may be
    plain types, pydantic models, dataclasses, TypedDicts, enumerations, and lists, dictionaries and unions of them.
    Raises ToolreeveError for a tool that could never be called.
    """
    assess = danger if not isinstance(danger, DangerLevel | str) else None
    if assess is not None and not callable(assess):
        raise ToolreeveError(f"danger={danger!r} is not a level: use one of {_LEVELS}, or a function of the arguments")
    static = DangerLevel.HIGH if assess is not None else read_danger(danger)
    reads = static is DangerLevel.SAFE if read_only is None else read_only
    limits = Limits(
        timeout=timeout,
        retry=retry,
        circuit_breaker=circuit_breaker,
        caching=caching,
        rate=rate,
        concurrency=concurrency,
    )

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        plain, unbound = _unwrap(function)
        signature = read_signature(plain, skip_first=unbound)
        own_name = name or own_name_of(plain)
        spec = ToolSpec(
            name=own_name,
            description=description or signature.description or own_name,
            input=check_input(input_schema, signature, own_name) if input_schema else signature.schema,
            output=output_schema or signature.output,
            danger=static,
            category=category,
            read_only=reads,
            idempotent=reads if idempotent is None else idempotent,
            limits=UNLIMITED if limits == UNLIMITED else limits,
            tags=(tags,) if isinstance(tags, str) else tuple(tags),
            examples=tuple(examples),
            source=source or f"{plain.__module__}.{getattr(plain, '__qualname__', own_name)}",
            estimated_cost=estimated_cost,
        )
        return FunctionTool(
            function=plain,
            signature=signature,
            spec=spec,
            assess=assess,
            list_effects=effects,
            inline=inline,
            blocking=blocking,
            screen=screen,
            preview=preview,
            unbound=unbound,
        )

    return decorate if function is None else decorate(function)


_LEVELS = ", ".join(level.value for level in DangerLevel)


def read_danger(danger: Any) -> DangerLevel:
    """A danger level, also by its name. Raises ToolreeveError for anything else."""
    if isinstance(danger, DangerLevel):
        return danger
    try:
        return DangerLevel(danger.strip().lower())
    except (AttributeError, ValueError):
        hint = hint_similar(danger, _LEVELS.split(", "))
        raise ToolreeveError(f"danger={danger!r} is not a level{hint}: use one of {_LEVELS}") from None


def _unwrap(function: Any) -> tuple[Any, bool]:
    """The function to call, and whether it is a method that still needs its instance or class."""
    if not callable(function) and not isinstance(function, classmethod):
        raise ToolreeveError(f"@tool needs a function, not {function!r:.100}")
    if isinstance(function, FunctionTool):
        raise ToolreeveError(f"{function.name!r} is already a tool: apply @tool once")
    if isinstance(function, classmethod):
        raise ToolreeveError(f"{function.__func__.__qualname__}: write @classmethod above @tool")
    if isinstance(function, staticmethod):
        return function.__func__, False
    inside = getattr(function, "__qualname__", "").rpartition(".")[0]
    in_class = bool(inside) and not inside.endswith("<locals>") and inspect.isfunction(function)
    first = next(iter(inspect.signature(function).parameters), "") if in_class else ""
    return function, first in ("self", "cls")


def mcp_tool(
    *,
    name: str,
    description: str,
    danger_level: DangerLevel | str = DangerLevel.MEDIUM,
    parameters: Mapping[str, Mapping[str, Any]],
) -> ToolDecorator:
    """The explicit form: parameters are listed; those without a default in the function are required."""

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
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
    if isinstance(candidate, MethodType) and isinstance(candidate.__func__, FunctionTool):
        candidate = candidate.__func__.__get__(candidate.__self__)
    if isinstance(candidate, FunctionTool):
        if candidate.unbound:
            own = f"instance.{candidate.function.__name__}"
            raise ToolreeveError(f"{candidate.spec.source} is a method: pass it from an instance, as `{own}`")
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

    danger = read_danger(getattr(candidate, "danger", DangerLevel.HIGH))
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


def _ready(spec: ToolSpec, run: Run, function: AnyFunctionTool | None) -> BoundTool:
    if not isinstance(spec.input, Mapping) or spec.input.get("type", "object") != "object":
        raise ToolreeveError(f"{spec.source}: input_schema of {spec.name!r} must describe an object")
    converts = function is not None and bool(function.signature.converts)
    schema = Schema(spec.input, verify=function.convert if function and converts else None)
    try:
        schema.check()
    except ToolreeveError as problem:
        raise ToolreeveError(f"{spec.source}: input_schema of {spec.name!r}: {problem}") from None
    return BoundTool(
        spec=spec,
        run=run,
        input=schema,
        assess=function.assess if function else None,
        list_effects=function.list_effects if function else None,
        inline=function.inline if function else False,
        screen=function.screen if function else None,
        grounds=function.grounds if function else None,
        blocking=function.blocking if function else False,
        preview=function.preview if function else None,
    )
