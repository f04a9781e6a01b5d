"""The `bash` and `execute_command` tools; only the first starts a shell.

Both run in the sandbox, which is the boundary; lists and rules state what is intended. A command that would be refused
is refused before anyone is asked for approval.
"""

import dataclasses
from collections.abc import Sequence

from toolreeve.core.argv import Pipeline, refusal, split
from toolreeve.core.call import Role
from toolreeve.core.command_settings import NO_NETWORK
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.failure_reason import lacks_network
from toolreeve.core.files import Files
from toolreeve.core.process import Ended, ProcessRequest, Stream
from toolreeve.core.result import Output
from toolreeve.core.tool import Arguments, tool
from toolreeve.tools import processes
from toolreeve.tools.neutral_git import NEUTRAL

_MAX_ARGUMENT = 100_000
_UNASKED = {**NEUTRAL, "RUFF_CACHE_DIR": "/tmp/.ruff_cache"}  # noqa: S108  # of the sandbox, not the host
"""What a command that nobody approved runs with: it cannot keep a cache in the workspace."""
_BETWEEN_STAGES_KB = 64 * 1024


def _script_effects(args: Arguments, _: Files) -> Sequence[Effect]:
    return (Effect(EffectKind.EXEC, str(args["command"])),)


def _check_settings(args: Arguments, ctx: Context) -> None:
    processes.working_directory(ctx, args.get("working_dir"))
    processes.check_timeout(args.get("timeout"), ctx.commands.timeout)


@tool(
    danger=DangerLevel.HIGH,
    category="shell",
    timeout=processes.MAX_SECONDS + processes.MARGIN,
    effects=_script_effects,
    screen=_check_settings,
    source="toolreeve",
)
async def bash(ctx: Context, command: str, timeout: float | None = None, working_dir: str | None = None) -> Output:
    """Run a bash script in the sandbox and return its output. A non-zero exit status is a failure.

    Args:
        command: The script.
        timeout: Seconds it may take; 30 unless configured otherwise.
        working_dir: The directory to run it in, inside the workspace; the workspace itself by default.
    """
    if "\0" in command:
        raise ToolError(ErrorCode.INVALID_PARAMS, "/command: contains a NUL character, which no script can")
    script = command.encode("utf-8", "surrogatepass")
    by_file = len(script) > _MAX_ARGUMENT
    request = ProcessRequest(
        argv=("bash", "-c", '. "$TOOLREEVE_SCRIPT"' if by_file else command),
        directory=processes.working_directory(ctx, working_dir),
        environment={**processes.new_environment(ctx), **({} if ctx.approved else _UNASKED)},
        neutral_git=not ctx.approved,
        files={"TOOLREEVE_SCRIPT": script} if by_file else {},
        network=ctx.commands.network,
        limits=processes.new_limits(ctx, processes.check_timeout(timeout, ctx.commands.timeout)),
    )
    ended = await processes.run(ctx, request, command)
    return _output(ended, command, "exit_code", ctx.commands.network)


def _output(ended: Ended, command: str, status: str, network: str) -> Output:
    stdout = processes.decode(ended.stdout)
    data = {"stdout": stdout, "stderr": processes.decode(ended.stderr), status: ended.exit_code}
    if ended.exit_code:
        failure = processes.failed(processes.describe_exit(ended), ended, command, data=data)
        if network == "none" and lacks_network(str(data["stderr"]), script=command, status=ended.exit_code):
            failure.suggestions = (NO_NETWORK,)
        raise failure
    return Output(
        data=processes.with_truncation(data, ended),
        main=stdout,
        truncated=ended.truncated,
        command=command,
        sandbox=ended.sandbox,
        order=ended.order,
    )


def role_of(args: Arguments, ctx: Context) -> Role:
    """The role of a call: the requested one, but never above the principal's."""
    return lower_role(args.get("role", "operator"), ctx.principal.role)


def lower_role(asked: str, own: Role) -> Role:
    return min(Role(asked), own, key=list(Role).index)


def _refuse_all(_: Arguments, __: Context) -> None:
    """Replaced when the runtime gives the tool its knowledge of programs."""
    raise refusal("this runtime has no knowledge of programs")


def _program_effects(args: Arguments, _: Files) -> Sequence[Effect]:
    try:
        return [
            Effect(EffectKind.EXEC, processes.join_argv(argv))
            for pipeline in split(args["command"])
            for argv in pipeline
        ]
    except ToolError:
        return (Effect(EffectKind.EXEC, str(args["command"])),)


@tool(
    danger=DangerLevel.MEDIUM,
    category="shell",
    timeout=processes.MAX_SECONDS + processes.MARGIN,
    effects=_program_effects,
    screen=_refuse_all,
    source="toolreeve",
    input_schema={
        "type": "object",
        "properties": {
            "command": {
                "type": "string",
                "description": "A program and its arguments, quoted as for a shell; `|` and `&&` are supported.",
            },
            "timeout": {
                "type": ["number", "null"],
                "default": None,
                "description": "Seconds it may take; 30 unless configured otherwise.",
            },
            "role": {
                "enum": ["viewer", "operator", "admin"],
                "default": "operator",
                "description": "Which programs may be started; never more than the caller's own role allows.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)
async def execute_command(ctx: Context, command: str, timeout: float | None = None, role: str = "operator") -> Output:  # noqa: ARG001 - read by the screen
    """Start a listed program without a shell and return its output. Pipelines and `&&` lists of such programs are
    supported; substitution, redirection, variables and file patterns are refused. A non-zero exit status is a failure.
    """
    pipelines = split(command)
    seconds = processes.check_timeout(timeout, ctx.commands.timeout)
    request = ProcessRequest(
        argv=(),
        directory=processes.working_directory(ctx, None),
        environment={**processes.new_environment(ctx), **NEUTRAL},
        neutral_git=True,
        network=ctx.commands.network,
        limits=processes.new_limits(ctx, seconds),
    )
    ended = await _run_list(ctx, pipelines, request, command)
    return _output(ended, command, "returncode", ctx.commands.network)


async def _run_list(ctx: Context, pipelines: tuple[Pipeline, ...], request: ProcessRequest, command: str) -> Ended:
    """Run the pipelines until one fails; returns the output of all of them and the exit of the last."""
    ended = await _run_pipeline(ctx, pipelines[0], request, command)
    for pipeline in pipelines[1:]:
        if ended.exit_code:
            break
        rest = dataclasses.replace(request, limits=processes.deduct(request.limits, ended.seconds))
        ended = _combine(ended, await _run_pipeline(ctx, pipeline, rest, command))
    return ended


async def _run_pipeline(ctx: Context, pipeline: Pipeline, request: ProcessRequest, command: str) -> Ended:
    """Each program gets the whole output of the one before it: each is confined by itself, none waits for another."""
    stdin = stderr = b""
    earlier: list[tuple[Stream, int]] = []
    seconds = 0.0
    for argv in pipeline[:-1]:
        limits = processes.new_limits(ctx, request.limits.timeout, output_kb=_BETWEEN_STAGES_KB)
        limits = processes.deduct(limits, seconds)
        stage = await processes.run(ctx, dataclasses.replace(request, argv=argv, stdin=stdin, limits=limits), command)
        if stage.truncated:
            most = _BETWEEN_STAGES_KB // 1024
            raise ToolError(ErrorCode.LIMIT, f"{argv[0]} printed more than the {most} MB that can be piped")
        stdin = stage.stdout
        stderr += stage.stderr
        earlier += [each for each in stage.order if each[0] == "stderr"]
        seconds += stage.seconds
    last = dataclasses.replace(
        request, argv=pipeline[-1], stdin=stdin, limits=processes.deduct(request.limits, seconds)
    )
    ended = await processes.run(ctx, last, command)
    order = (*earlier, *ended.order)
    return dataclasses.replace(ended, stderr=stderr + ended.stderr, seconds=seconds + ended.seconds, order=order)


def _combine(before: Ended, ended: Ended) -> Ended:
    return dataclasses.replace(
        ended,
        stdout=before.stdout + ended.stdout,
        stderr=before.stderr + ended.stderr,
        truncated=before.truncated or ended.truncated,
        order=(*before.order, *ended.order),
        seconds=before.seconds + ended.seconds,
    )


SHELL_TOOLS = (bash, execute_command)
