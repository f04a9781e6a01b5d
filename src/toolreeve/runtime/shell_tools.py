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
from toolreeve.core.tool import Arguments, FunctionTool, Rationale
from toolreeve.tools.argv import refusal, split
from toolreeve.tools.processes import check_timeout
from toolreeve.tools.quality import QUALITY_TOOLS, with_commands
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
    tools: Iterable[FunctionTool], *, root: str, home: str, quality: Mapping[str, Sequence[str]] = NO_COMMANDS
) -> list[FunctionTool]:
    """The tools, with those that run commands knowing what each would do in the workspace at `root`, and those that
    check a project knowing the commands that a person set for it."""

    @_remembering
    def script(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse

        return analyse(command, cwd=normpath(join(root, directory)), home=home, root=root)

    @_remembering
    def programs(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse_programs

        return analyse_programs(split(command), cwd=normpath(join(root, directory)), home=home, root=root)

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
        check_timeout(args.get("timeout"), ctx.commands.timeout)

    informed: dict[str, Callable[[FunctionTool], FunctionTool]] = {
        **{each.name: lambda tool: with_commands(tool, quality) for each in QUALITY_TOOLS},
        bash.name: lambda tool: _informed(tool, look_at_script),
        execute_command.name: lambda tool: replace(_informed(tool, look_at_programs), screen=screen),
    }
    return [informed[each.name](each) if each.name in informed else each for each in tools]


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
