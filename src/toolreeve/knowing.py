"""How do the shell tools know what a command would do? They are shown the analysis of the policy, for one workspace.

Tools see only capabilities, and policy knows nothing of tools: here the two meet. A command that is known to read
only is SAFE and runs unasked; its reads, writes and hosts are effects that rules see.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from posixpath import join, normpath
from typing import TYPE_CHECKING

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.files import Files
from toolreeve.core.tool import Arguments, FunctionTool

if TYPE_CHECKING:
    from toolreeve.policy.shell.analysis import Analysis

SHELL_TOOLS = frozenset({"bash", "execute_command"})
REMEMBERED = 256
OWN_SCRATCH = Effect(EffectKind.WRITE, "/tmp", Reach.BELOW)  # noqa: S108 - a name to compare with
"""Programs that keep files of their own there: in the sandbox, /tmp is private to the command."""


def knowing(tools: Iterable[FunctionTool], *, root: str, home: str) -> list[FunctionTool]:
    """The tools, with those that run commands knowing what each would do in the workspace at `root`."""

    @lru_cache(maxsize=REMEMBERED)
    def analysis(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse

        return analyse(command, cwd=normpath(join(root, directory)), home=home, root=root)

    return [_informed(each, analysis) if each.name in SHELL_TOOLS else each for each in tools]


def _informed(tool: FunctionTool, analysis: Callable[[str, str], "Analysis"]) -> FunctionTool:
    def look(args: Arguments) -> "Analysis":
        return analysis(str(args["command"]), str(args.get("working_dir") or "."))

    def assess(args: Arguments) -> DangerLevel:
        """What is known is as dangerous as it is; of what is not, the graver opinion counts."""
        found = look(args)
        if found.known or tool.assess is None:
            return found.danger
        return max(found.danger, tool.assess(args))

    def list_effects(args: Arguments, files: Files) -> Sequence[Effect]:
        own = tool.list_effects(args, files) if tool.list_effects else ()
        return tuple(dict.fromkeys((*own, *(each for each in look(args).effects if each != OWN_SCRATCH))))

    return replace(tool, assess=assess, list_effects=list_effects, grounds=lambda args: look(args).reason)
