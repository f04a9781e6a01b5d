"""The `git_status` and `git_diff` tools.

They run without approval, so git runs in the sandbox with the workspace read-only, and with every setting that names a
program overridden: those of git by name, the drivers that a repository adds as they are found in its settings.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.files import Files
from toolreeve.core.process import Ended, ProcessRequest
from toolreeve.core.result import Output
from toolreeve.core.tool import Arguments, Rationale, tool
from toolreeve.core.trial import Confinement
from toolreeve.tools import processes
from toolreeve.tools.neutral_git import NEUTRAL, neutral_for

_SECONDS = 60.0
_STATUS = ("status", "--ignore-submodules=dirty")
_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty")


async def _git(ctx: Context, *arguments: str, neutral: dict[str, str] | None = None, quiet: bool = True) -> Ended:
    argv = ("git", "--no-pager", *arguments)
    request = ProcessRequest(
        argv=argv,
        directory=processes.working_directory(ctx, None),
        environment={**processes.new_environment(ctx), **(neutral or NEUTRAL)},
        confinement=Confinement.LOOK,
        neutral_git=True,
        limits=processes.new_limits(ctx, _SECONDS),
    )
    command = processes.join_argv(argv)
    ended = await (ctx.processes.run(request) if quiet else processes.run(ctx, request, command))
    if ended.exit_code:
        raise processes.failed(processes.describe_exit(ended), ended, command)
    return ended


async def _neutral(ctx: Context) -> dict[str, str]:
    """Listing its settings makes git run nothing."""
    listed = await _git(ctx, "config", "--list", "--name-only", "-z")
    return neutral_for(key for key in processes.decode(listed.stdout).split("\0") if key)


def _status_effects(_: Arguments, files: Files) -> tuple[Effect, ...]:
    return Effect(EffectKind.EXEC, processes.join_argv(("git", *_STATUS))), Effect(
        EffectKind.READ, files.root, Reach.NAMES
    )


def _diff_effects(_: Arguments, files: Files) -> tuple[Effect, ...]:
    return Effect(EffectKind.EXEC, processes.join_argv(("git", *_DIFF))), Effect(
        EffectKind.READ, files.root, Reach.BELOW
    )


def _rationale(_: Arguments) -> Rationale:
    return Rationale("only reads the repository")


def _output(ended: Ended, command: tuple[str, ...], counts: dict[str, Any]) -> Output:
    stdout = processes.decode(ended.stdout)
    data = {"stdout": stdout, "stderr": processes.decode(ended.stderr), "exit_code": ended.exit_code, **counts}
    return Output(
        data=processes.with_truncation(data, ended),
        main=stdout,
        truncated=ended.truncated,
        command=processes.join_argv(("git", *command)),
        sandbox=ended.sandbox,
        order=ended.order,
    )


@tool(danger=DangerLevel.SAFE, category="quality", effects=_status_effects, timeout=4 * _SECONDS, source="toolreeve")
async def git_status(ctx: Context) -> Output:
    """Show the status of the workspace's git repository: branch, and changed, staged and untracked files."""
    neutral = await _neutral(ctx)
    facts = await _git(ctx, *_STATUS, "--porcelain=v2", "--branch", "-z", neutral=neutral)
    shown = await _git(ctx, *_STATUS, neutral=neutral, quiet=False)
    return _output(shown, _STATUS, read_status(processes.decode(facts.stdout)))


def read_status(text: str) -> dict[str, Any]:
    """Parses `git status --porcelain=v2 --branch -z` into counts."""
    found: dict[str, Any] = {"branch": None, "ahead": 0, "behind": 0}
    counts = dict.fromkeys(("staged", "changed", "untracked", "conflicts"), 0)
    for record in _records(text):
        match record[:1]:
            case "#":
                found |= _branch(record.split(" "))
            case "?":
                counts["untracked"] += 1
            case "u":
                counts["conflicts"] += 1
            case "1" | "2":
                counts["staged"] += record[2] != "."
                counts["changed"] += record[3] != "."
    return {**found, **counts, "clean": not any(counts.values())}


def _records(text: str) -> Iterator[str]:
    """A rename has its former name in a separate record, which is skipped."""
    records = iter(text.split("\0"))
    for record in records:
        yield record
        if record.startswith("2 "):
            next(records, None)


def _branch(words: list[str]) -> dict[str, Any]:
    match words:
        case ["#", "branch.head", *name]:
            return {"branch": " ".join(name)}
        case ["#", "branch.ab", ahead, behind]:
            return {"ahead": int(ahead), "behind": -int(behind)}
        case _:
            return {}


@tool(danger=DangerLevel.SAFE, category="quality", effects=_diff_effects, timeout=4 * _SECONDS, source="toolreeve")
async def git_diff(ctx: Context, *, staged: bool = False) -> Output:
    """Show the changes in the workspace's git repository as a unified diff.

    Args:
        staged: Show staged changes instead of unstaged ones.
    """
    command = (*_DIFF, *(("--cached",) if staged else ()))
    neutral = await _neutral(ctx)
    await _git(ctx, "rev-parse", "--git-dir", neutral=neutral)  # outside a repository, git diff compares files instead
    numbers = await _git(ctx, *command, "--numstat", "-z", "--no-renames", neutral=neutral)
    shown = await _git(ctx, *command, neutral=neutral, quiet=False)
    return _output(shown, command, read_numbers(processes.decode(numbers.stdout)))


def read_numbers(text: str) -> dict[str, int]:
    """Parses `git diff --numstat -z` into sums. Binary files have no lines."""
    rows = [record.split("\t", 2) for record in text.split("\0") if record]
    added = sum(int(row[0]) for row in rows if row[0].isdigit())
    deleted = sum(int(row[1]) for row in rows if row[1].isdigit())
    return {"files": len(rows), "insertions": added, "deletions": deleted}


REPOSITORY_TOOLS = tuple(replace(each, grounds=_rationale) for each in (git_status, git_diff))
