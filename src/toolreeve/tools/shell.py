"""What can an agent run? `bash` runs a real shell; `execute_command` starts listed programs and never a shell.

Both run in the sandbox, which is the boundary; lists and rules say what is meant. A command that would be refused is
refused before anybody is asked about it.
"""

import dataclasses
from collections.abc import Sequence

from toolreeve.core.call import Role
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.process import Ended, ProcessRequest
from toolreeve.core.result import Output
from toolreeve.core.tool import Arguments, tool
from toolreeve.tools import processes
from toolreeve.tools.argv import Pipeline, refusal, split
from toolreeve.tools.neutral_git import NEUTRAL

_LONGEST_ARGUMENT = 100_000
_BETWEEN_STAGES_KB = 64 * 1024


def _runs_script(args: Arguments, _: Files) -> Sequence[Effect]:
    return (Effect(EffectKind.EXEC, str(args["command"])),)


def _check_place(args: Arguments, ctx: Context) -> None:
    processes.directory_of(ctx, args.get("working_dir"))
    processes.seconds_allowed(args.get("timeout"), ctx.commands.timeout)


@tool(
    danger=DangerLevel.HIGH,
    category="shell",
    timeout=processes.LONGEST + processes.MARGIN,
    effects=_runs_script,
    screen=_check_place,
    source="toolreeve",
)
async def bash(ctx: Context, command: str, timeout: float | None = None, working_dir: str | None = None) -> Output:
    """Run a bash script in the sandbox and return what it printed. An exit status other than zero is a failure.

    Args:
        command: The script.
        timeout: Seconds it may take; 30 unless configured otherwise.
        working_dir: The directory to run it in, inside the workspace; the workspace itself when left out.
    """
    if "\0" in command:
        raise ToolError(ErrorCode.INVALID_PARAMS, "/command: contains a NUL character, which no script can")
    whole = command.encode("utf-8", "surrogatepass")
    by_file = len(whole) > _LONGEST_ARGUMENT
    request = ProcessRequest(
        argv=("bash", "-c", '. "$TOOLREEVE_SCRIPT"' if by_file else command),
        directory=processes.directory_of(ctx, working_dir),
        environment={**processes.environment_of(ctx), **({} if ctx.approved else NEUTRAL)},
        neutral_git=not ctx.approved,
        files={"TOOLREEVE_SCRIPT": whole} if by_file else {},
        network=ctx.commands.network,
        limits=processes.limits_of(ctx, processes.seconds_allowed(timeout, ctx.commands.timeout)),
    )
    ended = await processes.run(ctx, request, command)
    return _answer(ended, command, "exit_code")


def _answer(ended: Ended, command: str, status: str) -> Output:
    stdout = processes.text_of(ended.stdout)
    data = {"stdout": stdout, "stderr": processes.text_of(ended.stderr), status: ended.exit_code}
    if ended.exit_code:
        raise processes.failed(processes.how_it_exited(ended), ended, command, data=data)
    return Output(data=data, main=stdout, truncated=ended.truncated, command=command, sandbox=ended.sandbox)


def role_of(args: Arguments, ctx: Context) -> Role:
    """The role a call runs with: the one it asks for, but never above the principal's."""
    return lowered(args.get("role", "operator"), ctx.principal.role)


def lowered(asked: str, own: Role) -> Role:
    return min(Role(asked), own, key=list(Role).index)


def _refuse_unknowing(_: Arguments, __: Context) -> None:
    """Stands until the tool is told what programs do."""
    raise refusal("nothing is known here of what programs do")


def _starts_programs(args: Arguments, _: Files) -> Sequence[Effect]:
    try:
        return [
            Effect(EffectKind.EXEC, processes.shown(argv)) for pipeline in split(args["command"]) for argv in pipeline
        ]
    except ToolError:
        return (Effect(EffectKind.EXEC, str(args["command"])),)


@tool(
    danger=DangerLevel.MEDIUM,
    category="shell",
    timeout=processes.LONGEST + processes.MARGIN,
    effects=_starts_programs,
    screen=_refuse_unknowing,
    source="toolreeve",
    input_schema={
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "A program and its arguments, quoted as for a shell; `|` and `&&` are taken.",
            },
            "timeout": {
                "type": ["number", "null"],
                "default": None,
                "description": "Seconds it may take; 30 unless configured otherwise.",
            },
            "role": {
                "enum": ["viewer", "operator", "admin"],
                "default": "operator",
                "description": "Which programs may be started; never more than the caller's own role may.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)
async def execute_command(ctx: Context, command: str, timeout: float | None = None, role: str = "operator") -> Output:  # noqa: ARG001 - it is what the screen looks at
    """Start a listed program without any shell, and return what it printed. Pipelines and `&&` lists of such programs
    are taken; substitution, redirection, variables and file patterns are refused. An exit status other than zero is a
    failure.
    """
    pipelines = split(command)
    seconds = processes.seconds_allowed(timeout, ctx.commands.timeout)
    request = ProcessRequest(
        argv=(),
        directory=processes.directory_of(ctx, None),
        environment={**processes.environment_of(ctx), **NEUTRAL},
        neutral_git=True,
        network=ctx.commands.network,
        limits=processes.limits_of(ctx, seconds),
    )
    ended = await _run_list(ctx, pipelines, request, command)
    return _answer(ended, command, "returncode")


async def _run_list(ctx: Context, pipelines: tuple[Pipeline, ...], request: ProcessRequest, command: str) -> Ended:
    """One pipeline after another until one fails; what all of them printed, and how the last one ended."""
    ended = await _run_pipeline(ctx, pipelines[0], request, command)
    for pipeline in pipelines[1:]:
        if ended.exit_code:
            break
        rest = dataclasses.replace(request, limits=processes.shorter(request.limits, ended.seconds))
        ended = _after(ended, await _run_pipeline(ctx, pipeline, rest, command))
    return ended


async def _run_pipeline(ctx: Context, pipeline: Pipeline, request: ProcessRequest, command: str) -> Ended:
    """Each program gets all that the one before it printed: every one is confined by itself, none waits for another."""
    stdin, stderr, seconds = b"", b"", 0.0
    for argv in pipeline[:-1]:
        limits = processes.shorter(
            processes.limits_of(ctx, request.limits.timeout, output_kb=_BETWEEN_STAGES_KB), seconds
        )
        stage = await processes.run(ctx, dataclasses.replace(request, argv=argv, stdin=stdin, limits=limits), command)
        if stage.truncated:
            most = _BETWEEN_STAGES_KB // 1024
            raise ToolError(ErrorCode.LIMIT, f"{argv[0]} printed more than the {most} MB that can be piped on")
        stdin, stderr, seconds = stage.stdout, stderr + stage.stderr, seconds + stage.seconds
    last = dataclasses.replace(
        request, argv=pipeline[-1], stdin=stdin, limits=processes.shorter(request.limits, seconds)
    )
    ended = await processes.run(ctx, last, command)
    return dataclasses.replace(ended, stderr=stderr + ended.stderr, seconds=seconds + ended.seconds)


def _after(before: Ended, ended: Ended) -> Ended:
    return dataclasses.replace(
        ended,
        stdout=before.stdout + ended.stdout,
        stderr=before.stderr + ended.stderr,
        truncated=before.truncated or ended.truncated,
        seconds=before.seconds + ended.seconds,
    )


SHELL_TOOLS = (bash, execute_command)
