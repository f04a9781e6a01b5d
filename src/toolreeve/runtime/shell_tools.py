"""Connects the shell tools to the policy's command analysis.

Tools see only capabilities, and policy knows nothing of tools: here the two meet. A command that is known to only read
is SAFE and runs without approval; its reads, writes and hosts are effects that rules see. `execute_command` may start
only what the analysis knows, for the role of the call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from posixpath import join, normpath, realpath
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files
from toolreeve.core.guarded_paths import is_named
from toolreeve.core.secrets.paths import find_secret, is_sensitive
from toolreeve.core.tool import AnyFunctionTool, Arguments, Rationale
from toolreeve.tools.argv import refusal, split
from toolreeve.tools.files import read_file
from toolreeve.tools.processes import check_timeout
from toolreeve.tools.quality import QUALITY_TOOLS, with_commands
from toolreeve.tools.search import search_text
from toolreeve.tools.shell import bash, execute_command, role_of

if TYPE_CHECKING:
    from toolreeve.policy.shell.analysis import Analysis


class Inspection(NamedTuple):
    analysis: "Analysis"
    rationale: Rationale


class _Place(TypedDict):
    home: str
    root: str
    allowed: Sequence[str]


Inspect = Callable[[Arguments], Inspection]
NO_COMMANDS: Mapping[str, Sequence[str]] = {}
CACHED = 256
CACHED_LONG = 4
LONG = 4096
"""The analysis of a longer command is large: it is cached only while its call is under way."""
OWN_SCRATCH = Effect(EffectKind.WRITE, "/tmp", Reach.BELOW)  # noqa: S108 - a name to compare with
"""Scratch files of programs: in the sandbox, /tmp is private to the command."""


def with_analysis(
    tools: Iterable[AnyFunctionTool],
    *,
    root: str,
    home: str,
    quality: Mapping[str, Sequence[str]] = NO_COMMANDS,
    allowed: Sequence[str] = (),
) -> list[AnyFunctionTool]:
    """The tools, where those that run commands know what each would do in the workspace at `root`, and those that
    check a project know the configured quality commands. `allowed` is `workspace.sensitive_allow`."""

    place: _Place = {"home": home, "root": root, "allowed": allowed}

    @_cached
    def script(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse

        return analyse(command, cwd=normpath(join(root, directory)), **place)

    @_cached
    def programs(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse_programs

        return analyse_programs(split(command), cwd=normpath(join(root, directory)), **place)

    def inspect_script(args: Arguments) -> Inspection:
        return script(str(args["command"]), str(args.get("working_dir") or "."))

    def inspect_programs(args: Arguments) -> Inspection:
        try:
            return programs(str(args["command"]), ".")
        except ToolError:  # not a list of programs: the tool itself will refuse it
            return script(str(args["command"]), ".")

    def screen(args: Arguments, ctx: Context) -> None:
        from toolreeve.policy.shell.allowlist import refusal as reason_against

        found = programs(str(args["command"]), ".").analysis
        if reason := reason_against(found, role_of(args, ctx), ctx.commands, root=root):
            raise refusal(reason)
        check_timeout(args.get("timeout"), ctx.commands.timeout)

    informed: dict[str, Callable[[AnyFunctionTool], AnyFunctionTool]] = {
        **{each.name: lambda tool: with_commands(tool, quality) for each in QUALITY_TOOLS},
        **{each.name: lambda tool: _require_approval(tool, root, allowed) for each in (read_file, search_text)},
        bash.name: lambda tool: _inform(tool, inspect_script),
        execute_command.name: lambda tool: replace(_inform(tool, inspect_programs), screen=screen),
    }
    return [informed[each.name](each) if each.name in informed else each for each in tools]


def _require_approval(tool: AnyFunctionTool, root: str, allowed: Sequence[str]) -> AnyFunctionTool:
    """The tool, with calls that read a sensitive file by its name needing approval, as commands that do."""

    def find_reason(args: Arguments) -> str:
        path = normpath(join(root, str(args.get("path") or ".")))
        for each in (path, realpath(path)):
            below = each.removeprefix(f"{root.rstrip('/')}/")
            if is_sensitive(below) and not find_secret(below.split("/")) and not is_named(below, allowed):
                return f"reads {each}, which may hold secrets"
        glob = str(args.get("glob") or "")
        return f"reads {glob}, which may match secrets" if glob and _targets_secrets(glob) else ""

    def assess(args: Arguments) -> DangerLevel:
        return DangerLevel.HIGH if find_reason(args) else tool.spec.danger

    return replace(tool, assess=assess, grounds=lambda args: Rationale(find_reason(args)))


def _targets_secrets(glob: str) -> bool:
    from toolreeve.policy.shell.programs.secret_search import expand_braces, targeted_secrets

    return bool(targeted_secrets(expand_braces(glob)))


def _cached(analyse: Callable[[str, str], "Analysis"]) -> Callable[[str, str], Inspection]:
    """Each call needs the analysis of its command several times."""

    def inspect(command: str, directory: str) -> Inspection:
        found = analyse(command, directory)
        parts = tuple((" ".join(part.argv), part.why) for part in found.parts)
        return Inspection(found, Rationale(found.reason, parts, found))

    short = lru_cache(maxsize=CACHED)(inspect)
    long = lru_cache(maxsize=CACHED_LONG)(inspect)

    def lookup(command: str, directory: str) -> Inspection:
        if len(command) <= LONG:
            return short(command, directory)
        return long(command, directory)

    return lookup


def _inform(tool: AnyFunctionTool, inspect: Inspect) -> AnyFunctionTool:
    def assess(args: Arguments) -> DangerLevel:
        """The analysis alone decides how dangerous a command is, so that every layer sees the same level."""
        return inspect(args).analysis.danger

    def list_effects(args: Arguments, files: Files) -> Sequence[Effect]:
        own = tool.list_effects(args, files) if tool.list_effects else ()
        found = (each for each in inspect(args).analysis.effects if each != OWN_SCRATCH)
        return tuple(dict.fromkeys((*own, *found)))

    return replace(tool, assess=assess, list_effects=list_effects, grounds=lambda args: inspect(args).rationale)
