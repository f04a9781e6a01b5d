"""Hypothetical calls: actions for tools known by name only.

They answer policy questions; none of them can run. An unknown name is HIGH danger, a tool of a server is untrusted, and
paths are taken as written.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolreeve.core.action import Action
from toolreeve.core.argv import refusal
from toolreeve.core.call import LOCAL, Principal, ToolCall
from toolreeve.core.command_settings import CommandRules
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.http import METHOD_DANGERS, request_method
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.secrets.paths import is_sensitive
from toolreeve.core.tool import AssessDanger, BoundTool, Rationale, ToolSpec
from toolreeve.policy.conditions import absolute, host_of
from toolreeve.policy.known_tools import CONFINABLE, KNOWN, TOOL_DANGER_LEVELS, UNDOABLE, Effects, KnownTool, canonical
from toolreeve.policy.shell.inspection import Inspector, assess, list_effects

HOME = "/home/user"
"""Stands for the home directory, which a pure policy does not know."""
_SHELL_TOOLS = frozenset(("bash", "execute_command"))
_ANYTHING: Mapping[str, Any] = {"type": "object"}


class _Workspace:
    """Stands for the files of a workspace, of which only the root is known."""

    def __init__(self, root: str) -> None:
        self.root = root


def build_action(
    tool: str,
    args: Mapping[str, Any],
    *,
    root: str = "/",
    principal: Principal = LOCAL,
    session: str = "default",
    origin: str = "python",
    cost: float = 0.0,
    home: str = HOME,
    allowed: tuple[str, ...] = (),
) -> Action:
    """Commands are analysed as in the workspace at `root`; `allowed` is `workspace.sensitive_allow`."""
    call = ToolCall(tool=tool, args=args, principal=principal, session=session, origin=origin, estimated_cost=cost)
    name = canonical(tool)
    if name in _SHELL_TOOLS:
        bound = build_shell_tool(name, root, home, allowed)
    else:
        bound = build_tool(name, TOOL_DANGER_LEVELS.get(name))
    return Action(call, bound, args, cast(Files, _Workspace(root)))


@functools.lru_cache(maxsize=64)
def build_shell_tool(name: str, root: str, home: str, allowed: tuple[str, ...]) -> BoundTool:
    """A tool that runs commands: it knows what each would do."""
    inspector = Inspector(root=root, home=home, allowed=allowed)
    inspect = inspector.script if name == "bash" else inspector.programs

    def effects(args: Mapping[str, Any], _: Files) -> Sequence[Effect]:
        own = Effect(EffectKind.EXEC, str(args.get("command", "")))
        return tuple(dict.fromkeys((own, *list_effects(inspect, args))))

    def screen(args: Mapping[str, Any], context: Context) -> None:
        if name == "execute_command" and (
            reason := inspector.refusal(args, context.call.principal.role, CommandRules())
        ):
            raise refusal(reason)

    return dataclasses.replace(
        build_tool(name, KNOWN[name].danger),
        assess=lambda args: assess(inspect, args) if "command" in args else KNOWN[name].danger,
        list_effects=effects,
        grounds=lambda args: inspect(args).rationale if "command" in args else Rationale(""),
        screen=screen,
    )


@functools.lru_cache(maxsize=4096)
def build_tool(name: str, danger: DangerLevel | None = None) -> BoundTool:
    """`danger` is that of a tool which is not documented, if the program has named one."""
    known = KNOWN.get(name) or KnownTool(danger or DangerLevel.HIGH, "unknown")
    server = name.partition("__")[0] if "__" in name and name not in KNOWN else None
    spec = ToolSpec(
        name=name,
        description="",
        input=_ANYTHING,
        danger=known.danger,
        category=known.category,
        read_only=known.read_only,
        idempotent=known.read_only,
        source="policy",
        server=server,
        trusted=server is None,
        undoable=name in UNDOABLE,
        confinable=name in CONFINABLE,
    )
    return BoundTool(
        spec=spec,
        run=_refuse,
        input=Schema(_ANYTHING),
        assess=_ASSESSMENTS.get(name) or _assess_reading(known),
        list_effects=functools.partial(_request_effects if name == "http_request" else _list_effects, known.effects),
    )


async def _refuse(_: dict[str, Any], context: Context) -> Output:
    raise ToolError(ErrorCode.TOOL_NOT_FOUND, f"{context.call.tool!r} is only known by name; it cannot run")


def _assess_request(args: Mapping[str, Any]) -> DangerLevel:
    """A method that our tool refuses may be sent by a tool of the caller's own."""
    return METHOD_DANGERS.get(request_method(args), DangerLevel.HIGH)


def _assess_format(args: Mapping[str, Any]) -> DangerLevel:
    return DangerLevel.SAFE if args.get("check_only", True) is True else DangerLevel.MEDIUM


def _assess_reading(known: KnownTool) -> AssessDanger | None:
    """Reading a sensitive file by its name needs approval, whichever tool reads it."""
    reads = [each for each in known.effects if each.kind is EffectKind.READ and each.reach is not Reach.NAMES]
    if not known.read_only or not reads:
        return None
    parameters = [name for each in reads for name in each.named_by]

    def assess(args: Mapping[str, Any]) -> DangerLevel:
        paths = [path for name in parameters for path in _each(args.get(name))]
        return DangerLevel.HIGH if any(map(is_sensitive, paths)) else known.danger

    return assess


_ASSESSMENTS = {"http_request": _assess_request, "run_format": _assess_format}


def _list_effects(effects: Effects, args: Mapping[str, Any], files: Files) -> Sequence[Effect]:
    found = []
    for kind, parameters, reach in effects:
        unnamed = files.root if kind is EffectKind.READ or reach is not Reach.EXACT else None
        value = next((args[name] for name in parameters if args.get(name) is not None), unnamed)
        found += [Effect(kind, _target(kind, each, files.root), reach) for each in _each(value)]
    return found


def _request_effects(effects: Effects, args: Mapping[str, Any], files: Files) -> Sequence[Effect]:
    """A request with a safe method sends nothing."""
    found = _list_effects(effects, args, files)
    if _assess_request(args) is not DangerLevel.SAFE:
        return found
    return [effect for effect in found if effect.kind is not EffectKind.SEND]


def _each(value: Any) -> list[str]:
    """The texts in a value: itself, or those of a list."""
    values = value if isinstance(value, (list, tuple)) else [value]
    return [each for each in values if isinstance(each, str)]


def _target(kind: EffectKind, value: str, root: str) -> str:
    match kind:
        case EffectKind.READ | EffectKind.WRITE | EffectKind.DELETE:
            return absolute(value, root)
        case EffectKind.NET | EffectKind.SEND if kind is EffectKind.NET or "://" in value:
            return host_of(value) or value
        case _:
            return value
