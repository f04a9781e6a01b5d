"""How do the shell tools know what a command would do? They are shown the analysis of the policy, for one workspace.

Tools see only capabilities, and policy knows nothing of tools: here the two meet. A command that is known to read
only is SAFE and runs unasked; its reads, writes and hosts are effects that rules see. What `execute_command` may start
is what the analysis knows, for the role that the call has.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from posixpath import join, normpath
from typing import TYPE_CHECKING, NamedTuple

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files
from toolreeve.core.guarded_paths import is_named
from toolreeve.core.secrets.paths import find_secret, is_sensitive
from toolreeve.core.tool import Arguments, FunctionTool, Rationale
from toolreeve.tools.argv import refusal, split
from toolreeve.tools.files import read_file
from toolreeve.tools.processes import seconds_allowed
from toolreeve.tools.quality import QUALITY_TOOLS, told_of
from toolreeve.tools.search import search_text
from toolreeve.tools.shell import bash, execute_command, role_of

if TYPE_CHECKING:
    from toolreeve.policy.shell.analysis import Analysis


class Looked(NamedTuple):
    """What was found of a command, and how it is told."""

    analysis: "Analysis"
    grounds: Rationale


Look = Callable[[Arguments], Looked]
NO_COMMANDS: Mapping[str, Sequence[str]] = {}
REMEMBERED, REMEMBERED_LONG = 256, 4
LONG = 4096
"""A longer command's analysis is large, and is remembered only while its call is on the way."""
OWN_SCRATCH = Effect(EffectKind.WRITE, "/tmp", Reach.BELOW)  # noqa: S108 - a name to compare with
"""Programs that keep files of their own there: in the sandbox, /tmp is private to the command."""


def knowing(
    tools: Iterable[FunctionTool],
    *,
    root: str,
    home: str,
    quality: Mapping[str, Sequence[str]] = NO_COMMANDS,
    allowed: Sequence[str] = (),
) -> list[FunctionTool]:
    """The tools, with those that run commands knowing what each would do in the workspace at `root`, and those that
    check a project knowing the commands that a person set for it. `allowed` is `workspace.sensitive_allow`."""

    @_remembering
    def script(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse

        return analyse(command, cwd=normpath(join(root, directory)), home=home, root=root, allowed=allowed)

    @_remembering
    def programs(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse_programs

        cwd = normpath(join(root, directory))
        return analyse_programs(split(command), cwd=cwd, home=home, root=root, allowed=allowed)

    def look_at_script(args: Arguments) -> Looked:
        return script(str(args["command"]), str(args.get("working_dir") or "."))

    def look_at_programs(args: Arguments) -> Looked:
        try:
            return programs(str(args["command"]), ".")
        except ToolError:  # it is not a list of programs, and will be refused as that
            return script(str(args["command"]), ".")

    def screen(args: Arguments, ctx: Context) -> None:
        from toolreeve.policy.shell.allowlist import refusal as reason_against

        found = programs(str(args["command"]), ".").analysis
        if reason := reason_against(found, role_of(args, ctx), ctx.commands, root=root):
            raise refusal(reason)
        seconds_allowed(args.get("timeout"), ctx.commands.timeout)

    informed: dict[str, Callable[[FunctionTool], FunctionTool]] = {
        **{each.name: lambda tool: told_of(tool, quality) for each in QUALITY_TOOLS},
        **{each.name: lambda tool: _asking(tool, root, allowed) for each in (read_file, search_text)},
        bash.name: lambda tool: _informed(tool, look_at_script),
        execute_command.name: lambda tool: replace(_informed(tool, look_at_programs), screen=screen),
    }
    return [informed[each.name](each) if each.name in informed else each for each in tools]


def _asking(tool: FunctionTool, root: str, allowed: Sequence[str]) -> FunctionTool:
    """The tool, with calls that read a sensitive file by its name needing approval, as commands that do."""

    def find_reason(args: Arguments) -> str:
        path = normpath(join(root, str(args.get("path") or ".")))
        below = path.removeprefix(f"{root.rstrip('/')}/")
        if is_sensitive(below) and not find_secret(below.split("/")) and not is_named(below, allowed):
            return f"reads {path}, which may hold secrets"
        glob = str(args.get("glob") or "")
        return f"reads {glob}, which may match secrets" if glob and _targets_secrets(glob) else ""

    def assess(args: Arguments) -> DangerLevel:
        return DangerLevel.HIGH if find_reason(args) else tool.spec.danger

    return replace(tool, assess=assess, grounds=lambda args: Rationale(find_reason(args)))


def _targets_secrets(glob: str) -> bool:
    from toolreeve.policy.shell.programs.secret_search import expand_braces, targeted_secrets

    return bool(targeted_secrets(expand_braces(glob)))


def _remembering(analyse: Callable[[str, str], "Analysis"]) -> Callable[[str, str], Looked]:
    """Each call asks several times what its command would do."""

    def look(command: str, directory: str) -> Looked:
        found = analyse(command, directory)
        return Looked(found, Rationale(found.reason, tuple((" ".join(part.argv), part.why) for part in found.parts)))

    brief = lru_cache(maxsize=REMEMBERED)(look)
    lengthy = lru_cache(maxsize=REMEMBERED_LONG)(look)

    def remembered(command: str, directory: str) -> Looked:
        return (brief if len(command) <= LONG else lengthy)(command, directory)

    return remembered


def _informed(tool: FunctionTool, look: Look) -> FunctionTool:
    def assess(args: Arguments) -> DangerLevel:
        """The analysis alone says how dangerous a command is, so that all who ask hear the same."""
        return look(args).analysis.danger

    def list_effects(args: Arguments, files: Files) -> Sequence[Effect]:
        own = tool.list_effects(args, files) if tool.list_effects else ()
        return tuple(dict.fromkeys((*own, *(each for each in look(args).analysis.effects if each != OWN_SCRATCH))))

    return replace(tool, assess=assess, list_effects=list_effects, grounds=lambda args: look(args).grounds)
