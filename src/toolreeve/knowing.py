"""How do the shell tools know what a command would do? They are shown the analysis of the policy, for one workspace.

Tools see only capabilities, and policy knows nothing of tools: here the two meet. A command that is known to read
only is SAFE and runs unasked; its reads, writes and hosts are effects that rules see.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.files import Files
from toolreeve.core.tool import Arguments, AssessDanger, FunctionTool, ListEffects

if TYPE_CHECKING:
    from toolreeve.policy.shell.analysis import Analysis

SHELL_TOOLS = frozenset({"bash", "execute_command"})
REMEMBERED = 256


def knowing(tools: Iterable[FunctionTool], *, root: str, home: str) -> list[FunctionTool]:
    """The tools, with those that run commands knowing what each would do in the workspace at `root`."""

    @lru_cache(maxsize=REMEMBERED)
    def analysis(command: str, directory: str) -> "Analysis":
        from toolreeve.policy.shell.analysis import analyse

        return analyse(command, cwd=os.path.normpath(os.path.join(root, directory)), home=home, root=root)

    return [_informed(each, analysis) if each.name in SHELL_TOOLS else each for each in tools]
