import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.tools.approving_runtime import approving_runtime
from tests.world import World
from toolreeve.config import Commands, Workspace
from toolreeve.core.call import Role, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.events import Event
from toolreeve.core.tool import bind
from toolreeve.runtime.shell_tools import with_analysis
from toolreeve.tools.shell import SHELL_TOOLS, execute_command, lower_role


def test_bash_is_high_and_execute_command_medium() -> None:
    assert {tool.name: (tool.spec.danger, tool.spec.category) for tool in SHELL_TOOLS} == {
        "bash": (DangerLevel.HIGH, "shell"),
        "execute_command": (DangerLevel.MEDIUM, "shell"),
    }


@pytest.mark.parametrize(
    ("command", "danger"),
    [
        ("git status", DangerLevel.SAFE),
        ("mkdir build", DangerLevel.MEDIUM),
        ("echo '$(rm -rf /)' '> x'", DangerLevel.SAFE),
        ("git reset --hard", DangerLevel.HIGH),
        ("rm -rf build", DangerLevel.HIGH),
        ("git push -f", DangerLevel.HIGH),
        ("rsync -a --delete a/ b/", DangerLevel.HIGH),
        ("pytest -q", DangerLevel.HIGH),
    ],
)
def test_starting_programs_is_as_dangerous_as_what_they_do(command: str, danger: DangerLevel) -> None:
    (knows,) = with_analysis([execute_command], root="/project", home="/home/me")

    assert bind(knows).danger({"command": command}) is danger


def test_execute_command_starts_nothing_while_nothing_is_known() -> None:
    with pytest.raises(ToolError, match="no knowledge of programs") as refused:
        bind(execute_command).screen({"command": "ls"}, None)  # type: ignore[misc, arg-type]

    assert refused.value.code is ErrorCode.CMD_NOT_ALLOWED


async def test_bash_runs_a_real_shell_in_the_sandbox(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command="x=3; for i in $(seq $x); do echo $i; done | tac; echo no >&2; pwd")

    assert result.data == {"stdout": f"3\n2\n1\n{runtime.root}\n", "stderr": "no\n", "exit_code": 0}
    assert result.output == f"3\n2\n1\n{runtime.root}\n"
    assert (result.meta.sandbox, result.meta.truncated, runtime.asked) == ("full", False, [])


async def test_package_managers_do_not_wait_for_a_network_that_is_not_there(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command="echo $npm_config_fetch_retries $PIP_RETRIES")

    assert result.output == "0 1\n"


async def test_a_command_that_fails_keeps_what_it_printed(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command="echo some; echo worse >&2; exit 7")

    flat = result.to_flat()
    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.TOOL_EXEC, "exit code 7: worse")
    assert not result.error.retryable
    assert (flat["stdout"], flat["stderr"], flat["exit_code"], flat["isError"]) == ("some\n", "worse\n", 7, True)
    assert result.meta.command == "echo some; echo worse >&2; exit 7"
    assert result.meta.sandbox == "full"
    assert "some" in result.to_text()
    assert "worse" in result.to_text()


async def test_a_command_that_is_killed_says_by_which_signal(world: World) -> None:
    async with approving_runtime(world) as runtime:
        assert await runtime.failure("bash", command="kill -SEGV $$") == (ErrorCode.TOOL_EXEC, "killed by signal 11")


async def test_a_command_may_take_its_time_and_no_more(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command="echo begun; sleep 60", timeout=0.3)

    assert result.error is not None
    assert result.error.code is ErrorCode.TIMEOUT
    assert result.data is not None
    assert result.data["stdout"] == "begun\n"


async def test_the_configured_time_holds_where_the_call_does_not_say(world: World) -> None:
    async with approving_runtime(world, commands=Commands(timeout=0.2)) as runtime:
        assert (await runtime.failure("bash", command="sleep 60"))[0] is ErrorCode.TIMEOUT
        assert (await runtime.failure("execute_command", command="sleep 60"))[0] is ErrorCode.TIMEOUT
        assert (await runtime.failure("execute_command", command="sleep 0.1 && sleep 60"))[0] is ErrorCode.TIMEOUT


@pytest.mark.parametrize("timeout", [0, -1, 3601])
async def test_a_time_that_cannot_be_is_refused_before_anybody_is_asked(world: World, timeout: float) -> None:
    async with approving_runtime(world) as runtime:
        assert (await runtime.failure("bash", command="true", timeout=timeout))[0] is ErrorCode.INVALID_PARAMS
        assert (await runtime.failure("execute_command", command="true", timeout=timeout))[
            0
        ] is ErrorCode.INVALID_PARAMS
        assert runtime.asked == []


async def test_the_working_directory_lies_in_the_workspace(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    place = Workspace(dir=str(world.workspace), extra_roots=(str(other),))
    async with approving_runtime(world, workspace=place) as runtime:
        runtime.write("sub/a.txt", "")
        (runtime.root / "out").symlink_to("/etc")

        assert (await runtime.data("bash", command="pwd; ls", working_dir="sub"))[
            "stdout"
        ] == f"{runtime.root}/sub\na.txt\n"
        for escape in ("/etc", "..", "sub/../..", "out"):
            assert (await runtime.failure("bash", command="pwd", working_dir=escape))[0] is ErrorCode.PATH_FORBIDDEN
        assert (await runtime.failure("bash", command="pwd", working_dir=str(other)))[0] is ErrorCode.PATH_FORBIDDEN
        assert (await runtime.failure("bash", command="pwd", working_dir="nowhere"))[0] is ErrorCode.DIR_NOT_FOUND
        assert (await runtime.failure("bash", command="pwd", working_dir="sub/a.txt"))[0] is ErrorCode.INVALID_PATH
        assert runtime.asked == []


async def test_a_script_larger_than_an_argument_may_be_runs_all_the_same(world: World) -> None:
    script = "echo " + "x" * 300_000 + " | wc -c"
    async with approving_runtime(world) as runtime:
        assert (await runtime.data("bash", command=script))["stdout"] == "300001\n"


async def test_output_beyond_its_bound_is_cut_and_said_to_be(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command="echo first; yes | head -c 9000000; echo last")

    assert result.success
    assert result.meta.truncated
    assert result.data["truncated"] is True
    assert "output in a file" in result.data["next"]
    assert len(result.output) < 4_400_000
    assert result.output.startswith("first\n")
    assert result.output.endswith("y\nlast\n")
    assert re.search(r"\[\.\.\. 4,\d{3},\d{3} bytes of stdout were not kept \.\.\.\]", result.output)


async def test_both_streams_are_shown_marked_and_in_order_also_when_all_went_well(world: World) -> None:
    script = "echo one; sleep 0.2; echo two >&2; sleep 0.2; echo three"
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command=script)
        only_errors = await runtime.call("bash", command="echo careful >&2")
        failed = await runtime.call("bash", command=f"{script}; exit 3")

    assert result.to_text() == "stdout:\none\nstderr:\ntwo\nstdout:\nthree"
    assert result.to_mcp()["content"] == [{"type": "text", "text": result.to_text()}]
    assert result.output == "one\nthree\n"
    assert only_errors.to_text() == "stderr:\ncareful"
    assert failed.to_text().endswith("stdout:\none\nstderr:\ntwo\nstdout:\nthree")


async def test_a_long_output_is_cut_for_the_model_and_can_be_read_on_by_its_session_alone(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command="seq 1 40000; echo 40000 passed")
        sent = result.to_mcp()
        text = sent["content"][0]["text"]
        number = int(re.search(r"offset=(\d+)", sent["structuredContent"]["next"])[1])  # type: ignore[index]
        args = {"call_id": result.meta.call_id, "offset": number}
        more = await runtime.call("read_output", **args)
        foreign = await runtime.reeve.run(ToolCall(tool="read_output", args=args, session="another"))

    assert result.output.endswith("40000\n40000 passed\n")
    assert len(text) < 31_000
    assert text.startswith("1\n2\n")
    assert text.endswith("40000\n40000 passed\n")
    assert f'read_output(call_id="{result.meta.call_id}", offset={number})' in text
    assert len(str(sent["structuredContent"])) < 5_000
    assert sent["structuredContent"]["truncated"] is True
    assert sent["_meta"] == {"toolreeve_truncated": True}
    assert more.output.startswith(result.output[number : number + 1000])
    assert "read_output(" in more.data["next"]
    assert not foreign.success


async def test_a_client_that_shows_the_structure_first_gets_the_output_there_once(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("bash", command="seq 1 4000")
    sent = result.to_mcp(structured_first=True)

    assert sent["structuredContent"]["stdout"] == result.output
    assert len(sent["content"][0]["text"]) < 2_500
    assert len(result.to_mcp()["structuredContent"]["stdout"]) < 2_500
    assert result.to_mcp()["content"][0]["text"] == result.output


async def next_progress(events: AsyncIterator[Event]) -> str:
    async with asyncio.timeout(20):
        async for event in events:
            if event.event == "tool_progress":
                return str(event.data["text"])
    raise AssertionError("the events ended")


async def test_output_is_reported_as_it_arrives(world: World) -> None:
    """The command goes on only after what it printed was heard: it waits for a file."""
    command = "echo first; until [ -e go ]; do sleep 0.02; done; echo second"
    async with approving_runtime(world) as runtime, runtime.reeve.bus.subscribe() as events:
        running = asyncio.create_task(runtime.data("bash", command=command))

        assert await next_progress(events) == "first\n"
        runtime.write("go", "")
        assert await next_progress(events) == "second\n"
        assert (await running)["stdout"] == "first\nsecond\n"


async def test_a_cancelled_command_is_gone(world: World) -> None:
    script = "echo begun; until [ -e go ]; do sleep 0.02; done; touch ended"
    async with approving_runtime(world) as runtime, runtime.reeve.bus.subscribe() as events:
        call = ToolCall(tool="bash", args={"command": script})
        running = asyncio.create_task(runtime.reeve.run(call))
        await next_progress(events)
        assert runtime.reeve.cancel(call.id)
        result = await running
        runtime.write("go", "")
        await runtime.data("bash", command="sleep 0.2")

        assert result.error is not None
        assert result.error.code is ErrorCode.CANCELLED
        assert not (runtime.root / "ended").exists()


async def test_nothing_of_the_runtimes_own_environment_reaches_a_command(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "very-secret-value")
    async with approving_runtime(world) as runtime:
        printed = (await runtime.data("bash", command="env; cat /proc/self/environ"))["stdout"]

    assert "very-secret-value" not in printed


async def test_execute_command_pipes_and_lists_programs(world: World) -> None:
    async with approving_runtime(world) as runtime:
        runtime.write("a.txt", "b\na\nb\n")
        result = await runtime.call("execute_command", command="cat a.txt | sort -u | wc -l && echo 'it ended'")

    assert result.data == {"stdout": "2\nit ended\n", "stderr": "", "returncode": 0}
    assert result.to_flat()["exit_code"] == 0


async def test_a_list_ends_at_the_first_failure_and_a_pipeline_with_its_last_program(world: World) -> None:
    async with approving_runtime(world) as runtime:
        runtime.write("a.txt", "a\n")
        result = await runtime.call("execute_command", command="echo one && grep x a.txt && echo two")

        assert result.error is not None
        assert result.data == {"stdout": "one\n", "stderr": "", "returncode": 1}
        assert (await runtime.data("execute_command", command="grep x a.txt | wc -l"))["stdout"] == "0\n"
        assert (await runtime.failure("execute_command", command="ls nope | cat && false"))[1].startswith("exit code 1")


async def test_what_is_piped_arrives_byte_for_byte(world: World) -> None:
    async with approving_runtime(world) as runtime:
        (runtime.root / "a.bin").write_bytes(bytes(range(256)) * 20_000)
        data = await runtime.data("execute_command", command="cat a.bin | sha256sum && sha256sum a.bin")

    piped, whole = data["stdout"].splitlines()
    assert piped.split()[0] == whole.split()[0]


INJECTIONS = [
    "echo a; touch pwned",
    "echo $(touch pwned)",
    "echo `touch pwned`",
    'echo "$(touch pwned)"',
    "echo a\ntouch pwned",
    "echo a & touch pwned",
    "false || touch pwned",
    "echo a > pwned",
    "echo a | tee pwned >&2",
    "bash -c 'touch pwned'",
    "/bin/sh -c 'touch pwned'",
    "env sh -c 'touch pwned'",
    "echo 'touch pwned' | bash",
    "find . -exec touch pwned ';'",
    "xargs -I{} sh -c {}",
    'python3 -c \'open("pwned", "w")\'',
    "git -c alias.x='!touch pwned' x",
    "tar cf /dev/null a.txt --checkpoint=1 --checkpoint-action=exec='touch pwned'",
    "awk 'BEGIN{system(\"touch pwned\")}'",
    "sed '1e touch pwned' a.txt",
    "./script",
    "IFS=x touch pwned",
    "eval touch pwned",
    "exec touch pwned",
    "echo <(touch pwned)",
    "${SHELL} -c 'touch pwned'",
]


@pytest.mark.parametrize("command", INJECTIONS)
async def test_no_injection_gets_past_execute_command(world: World, command: str) -> None:
    async with approving_runtime(world, role=Role.ADMIN) as runtime:
        runtime.write("a.txt", "a\n")
        runtime.write("script", "#!/bin/sh\ntouch pwned\n").chmod(0o755)

        code, message = await runtime.failure("execute_command", command=command, role="admin")

        assert (code, message.startswith("the command is refused: ")) == (ErrorCode.CMD_NOT_ALLOWED, True)
        assert not (runtime.root / "pwned").exists()
        assert runtime.asked == []


async def test_shell_characters_in_quotes_are_only_characters(world: World) -> None:
    async with approving_runtime(world) as runtime:
        data = await runtime.data("execute_command", command="echo '$(touch pwned); `id` > x && y'")

        assert data["stdout"] == "$(touch pwned); `id` > x && y\n"
        assert not (runtime.root / "pwned").exists()


def test_a_role_can_be_lowered_and_never_raised() -> None:
    assert lower_role("viewer", Role.ADMIN) is Role.VIEWER
    assert lower_role("admin", Role.OPERATOR) is Role.OPERATOR
    assert lower_role("operator", Role.VIEWER) is Role.VIEWER


async def test_the_role_comes_from_the_principal(world: World) -> None:
    async with approving_runtime(world, role=Role.VIEWER) as runtime:
        assert (await runtime.data("execute_command", command="echo seen"))["stdout"] == "seen\n"
        code, message = await runtime.failure("execute_command", command="touch a", role="admin")

        assert code is ErrorCode.CMD_NOT_ALLOWED
        assert "'touch' needs the role operator, this call has the role viewer" in message
        assert not (runtime.root / "a").exists()


async def test_the_configured_lists_hold(world: World) -> None:
    async with approving_runtime(world, commands=Commands(allowlist=("echo", "cat"), blocklist=("cat",))) as runtime:
        assert (await runtime.data("execute_command", command="echo a"))["stdout"] == "a\n"
        assert "commands.blocklist" in (await runtime.failure("execute_command", command="cat a"))[1]
        assert "commands.allowlist" in (await runtime.failure("execute_command", command="ls"))[1]


async def test_git_runs_no_program_that_a_repository_names(world: World) -> None:
    async with approving_runtime(world) as runtime:
        await runtime.data("execute_command", command="git init -q .")
        runtime.write("hook", "#!/bin/sh\ntouch pwned\n").chmod(0o755)
        with (runtime.root / ".git/config").open("a") as config:
            config.write(f"[core]\n\tfsmonitor = {runtime.root}/hook\n\tpager = {runtime.root}/hook\n")
        for command in ("git status", "git add hook", "git --no-pager log --all"):
            await runtime.call("execute_command", command=command)

        assert not (runtime.root / "pwned").exists()


@pytest.mark.parametrize("external", ["", "[diff]\n\texternal = ./hook\n"], ids=["plain", "named in the repository"])
async def test_git_shows_diffs_and_runs_no_program_for_them(world: World, external: str) -> None:
    root = world.workspace
    root.joinpath("hook").write_text("#!/bin/sh\ntouch pwned\n")
    root.joinpath("hook").chmod(0o755)
    root.joinpath("a").write_text("one\n")
    for words in (("init", "-q"), ("add", "a"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")):
        await (await asyncio.create_subprocess_exec("git", *words, cwd=root)).wait()
    with (root / ".git/config").open("a") as config:
        config.write(external)
    root.joinpath("a").write_text("two\n")

    async with approving_runtime(world) as runtime:
        shown = await runtime.data("bash", command="git diff")

    assert "+two" in shown["stdout"]
    assert not (root / "pwned").exists()


async def test_a_program_that_is_not_installed_is_a_failure_that_says_so(world: World) -> None:
    async with approving_runtime(world) as runtime:
        code, message = await runtime.failure("execute_command", command="dotnet --version")

    assert code is ErrorCode.TOOL_EXEC
    assert "'dotnet' cannot be started" in message


async def test_a_refusal_is_reported_as_a_decision_of_the_tool(world: World) -> None:
    async with approving_runtime(world) as runtime:
        result = await runtime.call("execute_command", command="sudo ls")

    assert result.meta.verdict.layer == "tool"
    assert "it changes privileges" in result.meta.verdict.reason


def test_effects_name_every_program_with_its_arguments(world: World) -> None:
    bound = bind(execute_command)

    effects = bound.effects({"command": "cat 'a b' | sort && ls"}, files=None)  # type: ignore[arg-type]

    assert [str(effect) for effect in effects] == ["exec:cat 'a b'", "exec:sort", "exec:ls"]
