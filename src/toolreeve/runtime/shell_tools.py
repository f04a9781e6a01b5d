"""Connects the shell tools to the policy's command analysis.

Tools see only capabilities, and policy knows nothing of tools: here the two meet. A command that is known to only read
is SAFE and runs without approval; its reads, writes and hosts are effects that rules see. `execute_command` may start
only what the analysis knows, for the role of the call.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from posixpath import islink, join, normpath, realpath

from toolreeve.core.argv import refusal
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect
from toolreeve.core.files import Files
from toolreeve.core.guarded_paths import is_named
from toolreeve.core.secrets.paths import find_secret, is_sensitive
from toolreeve.core.tool import AnyFunctionTool, Arguments, Rationale
from toolreeve.guard.files.roots import MAX_PATH
from toolreeve.policy.shell.inspection import Inspect, Inspector, assess, list_effects
from toolreeve.tools.files import read_file
from toolreeve.tools.processes import check_timeout
from toolreeve.tools.quality import QUALITY_TOOLS, with_commands
from toolreeve.tools.search import search_text
from toolreeve.tools.shell import bash, execute_command, role_of

NO_COMMANDS: Mapping[str, Sequence[str]] = {}
LONGEST_KEPT = 256
"""The analysis of a longer path is not kept."""


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

    inspector = Inspector(root=root, home=home, allowed=allowed)

    def screen(args: Arguments, ctx: Context) -> None:
        if reason := inspector.refusal(args, role_of(args, ctx), ctx.commands):
            raise refusal(reason)
        check_timeout(args.get("timeout"), ctx.commands.timeout)

    informed: dict[str, Callable[[AnyFunctionTool], AnyFunctionTool]] = {
        **{each.name: lambda tool: with_commands(tool, quality) for each in QUALITY_TOOLS},
        **{each.name: lambda tool: _require_approval(tool, root, allowed) for each in (read_file, search_text)},
        bash.name: lambda tool: _inform(tool, inspector.script),
        execute_command.name: lambda tool: replace(_inform(tool, inspector.programs), screen=screen),
    }
    return [informed[each.name](each) if each.name in informed else each for each in tools]


def _require_approval(tool: AnyFunctionTool, root: str, allowed: Sequence[str]) -> AnyFunctionTool:
    """The tool, with calls that read a sensitive file by its name needing approval, as commands that do."""
    prefix = f"{root.rstrip('/')}/"

    def needs_approval(path: str) -> bool:
        below = path.removeprefix(prefix)
        return is_sensitive(below) and not find_secret(below.split("/")) and not is_named(below, allowed)

    def parse(given: str) -> tuple[str, bool, Sequence[str]]:
        """The path, whether it needs approval by its spelling, and all of it below the root that may be a link."""
        path = normpath(join(root, given))
        start = len(prefix) if path.startswith(prefix) else 1
        ends = [at for at in range(start, len(path)) if path[at] == "/"]
        return path, needs_approval(path), [*(path[:end] for end in ends), path]

    remembered = lru_cache(maxsize=256)(parse)

    def find_reason(args: Arguments) -> str:
        given = str(args.get("path") or ".")[: MAX_PATH + 1]  # a longer one cannot be opened
        path, is_asked, may_be_links = (remembered if len(given) <= LONGEST_KEPT else parse)(given)
        if not is_asked and any(map(islink, may_be_links)):
            path = realpath(path)
            is_asked = needs_approval(path)
        if is_asked:
            return f"reads {path}, which may hold secrets"
        glob = str(args.get("glob") or "")
        return f"reads {glob}, which may match secrets" if glob and _targets_secrets(glob) else ""

    def assess_reading(args: Arguments) -> DangerLevel:
        return DangerLevel.HIGH if find_reason(args) else tool.spec.danger

    return replace(tool, assess=assess_reading, grounds=lambda args: Rationale(find_reason(args)))


def _targets_secrets(glob: str) -> bool:
    from toolreeve.policy.shell.programs.secret_search import expand_braces, targeted_secrets

    return bool(targeted_secrets(expand_braces(glob)))


def _inform(tool: AnyFunctionTool, inspect: Inspect) -> AnyFunctionTool:
    def effects(args: Arguments, files: Files) -> Sequence[Effect]:
        own = tool.list_effects(args, files) if tool.list_effects else ()
        return tuple(dict.fromkeys((*own, *list_effects(inspect, args))))

    return replace(
        tool,
        assess=lambda args: assess(inspect, args),
        list_effects=effects,
        grounds=lambda args: inspect(args).rationale,
    )
