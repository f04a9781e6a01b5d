"""Tools that run a project's tests, linter, formatter, type checker and build.

The commands are detected, or configured under `quality`. They run the project's own code, so all of them run in the
sandbox, and a check cannot change the workspace. A non-zero exit is a failure that keeps the counts.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.argv import split
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.process import Ended, ProcessLimits, ProcessRequest
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, Arguments, ListEffects, tool
from toolreeve.core.trial import Confinement
from toolreeve.tools import processes, projects
from toolreeve.tools.neutral_git import NEUTRAL
from toolreeve.tools.quality_commands import Counts, Purpose, QualityStep, steps

_ENVIRONMENT = {
    "CI": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "npm_config_update_notifier": "false",
    "npm_config_fund": "false",
    "npm_config_audit": "false",
    "npm_config_cache": "/tmp/.npm",  # noqa: S108  # of the sandbox, not the host
    "RUFF_CACHE_DIR": "/tmp/.ruff_cache",  # noqa: S108
    "MYPY_CACHE_DIR": "/tmp/.mypy_cache",  # noqa: S108
    "BLACK_CACHE_DIR": "/tmp/.black_cache",  # noqa: S108
}
_NO_TESTS = 5
"""The exit status of pytest when it found no tests."""


def plan(ctx: Context, purpose: Purpose, target: str) -> list[QualityStep]:
    """The commands for the target, in order; at least one. Raises ToolError."""
    if configured := ctx.commands.quality.get(purpose):
        return _configured(ctx, configured, target)
    found = projects.find(ctx.files, target)
    planned = [step for project in found for step in steps(purpose, project)]
    if not planned:
        places = ", ".join(ctx.files.relative(project.directory) for project in found)
        raise ToolError(
            ErrorCode.TOOL_EXEC,
            f"no command for {purpose.replace('_', ' ')} was found in {places}",
            retryable=False,
            suggestions=(f"set quality.{purpose} in toolreeve.toml to the commands to run",),
        )
    return planned


def _configured(ctx: Context, commands: Sequence[str], target: str) -> list[QualityStep]:
    """Any program may be configured, but without a shell: one program a command."""
    place = None if target in ("all", "backend", "frontend") else target
    directory = processes.working_directory(ctx, place)
    planned = []
    for command in commands:
        pipelines = split(command)
        if len(pipelines) > 1 or len(pipelines[0]) > 1:
            raise ToolError(ErrorCode.CMD_NOT_ALLOWED, f"{command!r}: set one program a command, without | and &&")
        planned.append(QualityStep(pipelines[0][0][0], pipelines[0][0], directory))
    return planned


async def perform(ctx: Context, purpose: Purpose, target: str) -> Output:
    planned = plan(ctx, purpose, target)
    limits = processes.new_limits(ctx, min(ctx.commands.quality_timeout, processes.MAX_SECONDS))
    from toolreeve.tools.output_parsers import count

    done: list[tuple[QualityStep, Ended, Counts]] = []
    for step in planned:
        if len(planned) > 1:
            ctx.progress(f"{step.tool} in {ctx.files.relative(step.directory)}\n")
        ended = await _run(ctx, purpose, step, limits)
        limits = processes.deduct(limits, ended.seconds)
        done.append((step, ended, count(purpose, processes.decode(ended.stdout), processes.decode(ended.stderr))))
    return _output(ctx, purpose, target, done)


async def _run(ctx: Context, purpose: Purpose, step: QualityStep, limits: ProcessLimits) -> Ended:
    own = [f"{step.directory}/{folder}" for folder in ("node_modules/.bin", ".venv/bin", "venv/bin")]
    request = ProcessRequest(
        argv=step.argv,
        directory=step.directory,
        environment={**processes.new_environment(ctx, *own, *ctx.commands.search_path), **NEUTRAL, **_ENVIRONMENT},
        confinement=Confinement.LOOK if purpose == "format_check" else Confinement.WORK,
        limits=limits,
    )
    try:
        return await processes.run(ctx, request, processes.join_argv(step.argv))
    except ToolError as problem:
        if problem.code is ErrorCode.TOOL_EXEC and problem.data is None:
            instead = f"set quality.{purpose} in toolreeve.toml"
            problem.suggestions = (f"install {step.tool} into the project (.venv or node_modules), or {instead}",)
        raise


def _output(ctx: Context, purpose: Purpose, target: str, done: Sequence[tuple[QualityStep, Ended, Counts]]) -> Output:
    command = " && ".join(processes.join_argv(step.argv) for step, _, _ in done)
    stdout = "".join(processes.decode(ended.stdout) for _, ended, _ in done)
    data: dict[str, Any] = {
        "target": target,
        "stdout": stdout,
        "stderr": "".join(processes.decode(ended.stderr) for _, ended, _ in done),
        "exit_code": next((ended.exit_code for _, ended, _ in done if ended.exit_code), 0),
        **_summed(done),
        "runs": [_run_data(ctx, *each) for each in done],
    }
    failures = [each for each in done if each[1].exit_code]
    worst = failures[0][1] if failures else done[-1][1]
    all_ended = dataclasses.replace(
        worst,
        truncated=any(ended.truncated for _, ended, _ in done),
        order=tuple(part for _, ended, _ in done for part in ended.order),
    )
    if failures:
        reasons = "; ".join(_why(purpose, *each) for each in failures)
        raise processes.failed(reasons, all_ended, command, data=data)
    return Output(
        data=processes.with_truncation(data, all_ended),
        main=stdout,
        truncated=all_ended.truncated,
        command=command,
        sandbox=all_ended.sandbox,
        order=all_ended.order,
    )


def _summed(done: Sequence[tuple[QualityStep, Ended, Counts]]) -> Counts:
    total: Counts = {}
    for _, _, counts in done:
        for name, number in counts.items():
            total[name] = total.get(name, 0) + number
    return total


def _run_data(ctx: Context, step: QualityStep, ended: Ended, counts: Counts) -> dict[str, Any]:
    return {
        "tool": step.tool,
        "directory": ctx.files.relative(step.directory),
        "command": processes.join_argv(step.argv),
        "exit_code": ended.exit_code,
        **counts,
    }


def _why(purpose: Purpose, step: QualityStep, ended: Ended, counts: Counts) -> str:
    if purpose == "tests" and ended.exit_code == _NO_TESTS and not any(counts.values()):
        return f"{step.tool}: no tests were found"
    from toolreeve.tools.output_parsers import summarise

    return f"{step.tool}: {summarise(counts) or processes.describe_exit(ended)}"


def effects_of(purpose_of: Callable[[Arguments], Purpose], commands: Mapping[str, Sequence[str]]) -> ListEffects:
    """The commands run the project's own code: they may read all of the workspace, and change all of it unless it is
    read-only to them. `commands` are the configured ones."""

    def effects(args: Arguments, files: Files) -> Sequence[Effect]:
        purpose = purpose_of(args)
        kinds = (EffectKind.READ,) if purpose == "format_check" else _KINDS
        started = commands.get(purpose) or _detected(files, purpose, str(args.get("target", "all")))
        return (
            *(Effect(EffectKind.EXEC, command) for command in started),
            *(Effect(kind, files.root, Reach.BELOW) for kind in kinds),
        )

    return effects


_KINDS = (EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE)


def _detected(files: Files, purpose: Purpose, target: str) -> Sequence[str]:
    """The commands, or a description where none is found and the call will be refused."""
    try:
        found = [step for project in projects.find(files, target) for step in steps(purpose, project)]
    except ToolError:
        found = []
    return [processes.join_argv(step.argv) for step in found] or [f"{purpose} of {target}"]


def _quality(purpose: Purpose, summary: str) -> AnyFunctionTool:
    async def run(ctx: Context, target: str = "all") -> Output:
        return await perform(ctx, purpose, target)

    run.__name__ = f"run_{purpose}"
    run.__doc__ = f"{summary}\n\nArgs:\n    target: {_TARGET}"
    return tool(
        danger=DangerLevel.MEDIUM,
        category="quality",
        timeout=processes.MAX_SECONDS + processes.MARGIN,
        effects=effects_of(lambda _: purpose, {}),
        screen=lambda args, ctx: _screen(purpose, args, ctx),
        source="toolreeve",
    )(run)


def _screen(purpose: Purpose, args: Arguments, ctx: Context) -> None:
    plan(ctx, purpose, args.get("target", "all"))


_TARGET = "`backend` (a Python project), `frontend` (a Node project), `all`, or a path in the workspace."

run_tests = _quality("tests", "Run the project's tests and count what passed and failed.")
run_lint = _quality("lint", "Run the project's linter and count the issues.")
run_typecheck = _quality("typecheck", "Run the project's type checker and count the issues.")
run_build = _quality("build", "Build the project.")


def _purpose(args: Arguments) -> Purpose:
    return "format_check" if args.get("check_only", True) is True else "format"


def _assess_format(args: Arguments) -> DangerLevel:
    return DangerLevel.SAFE if _purpose(args) == "format_check" else DangerLevel.MEDIUM


@tool(
    danger=_assess_format,
    category="quality",
    timeout=processes.MAX_SECONDS + processes.MARGIN,
    effects=effects_of(_purpose, {}),
    screen=lambda args, ctx: _screen(_purpose(args), args, ctx),
    source="toolreeve",
)
async def run_format(ctx: Context, target: str = "all", *, check_only: bool = True) -> Output:
    """Check the formatting of the project's code, or format it.

    Args:
        target: `backend` (a Python project), `frontend` (a Node project), `all`, or a path in the workspace.
        check_only: Only report which files would change; the workspace is then read-only.
    """
    return await perform(ctx, "format_check" if check_only else "format", target)


run_format = dataclasses.replace(run_format, spec=dataclasses.replace(run_format.spec, danger=DangerLevel.MEDIUM))

QUALITY_TOOLS = (run_tests, run_lint, run_format, run_typecheck, run_build)


def with_commands(each: AnyFunctionTool, commands: Mapping[str, Sequence[str]]) -> AnyFunctionTool:
    """The tool with the configured commands in its effects, so that rules see them."""
    purposes: Mapping[str, Callable[[Arguments], Purpose]] = {
        run_tests.name: lambda _: "tests",
        run_lint.name: lambda _: "lint",
        run_typecheck.name: lambda _: "typecheck",
        run_build.name: lambda _: "build",
        run_format.name: _purpose,
    }
    return dataclasses.replace(each, list_effects=effects_of(purposes[each.name], commands))
