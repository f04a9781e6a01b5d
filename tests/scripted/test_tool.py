"""YAML tools through the whole runtime: real policy, sandbox, record and programs."""

import asyncio
import json
from typing import Any

import pytest

from tests.scripted.scripted_world import ScriptedWorld, yes
from tests.tools.file_tools import NoServices
from toolreeve import Toolreeve
from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context, Services
from toolreeve.core.errors import ErrorCode
from toolreeve.core.process import Ended, OnOutput, ProcessRequest
from toolreeve.core.result import ToolResult
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.scripted.definition import read_definitions
from toolreeve.scripted.shebang import VALUES
from toolreeve.scripted.tool import bind_definition


async def called(scripted: ScriptedWorld, text: str, tool: str = "a", **args: Any) -> ToolResult:
    async with scripted.with_tools(text, approve=yes) as reeve:
        assert reeve.problems == ()
        return await reeve.call(tool, args)


async def test_a_script_runs_confined_and_its_output_is_the_result(scripted: ScriptedWorld) -> None:
    result = await called(scripted, "a:\n  script: 'printf %s {{x}}; echo oops >&2'\n", x="$(id) 'x")

    assert result.data == {"stdout": "$(id) 'x", "stderr": "oops\n", "exit_code": 0}
    assert (result.output, result.meta.sandbox, result.meta.command) == ("$(id) 'x", "full", "bash")


async def test_a_value_of_a_megabyte_arrives(scripted: ScriptedWorld) -> None:
    result = await called(scripted, "a: {script: 'printf %s \"{{x}}\" | wc -c'}\n", x="é" * 500_000)

    assert result.output.strip() == "1000000"


async def test_a_section_may_make_a_script_longer_than_an_argument_can_be(scripted: ScriptedWorld) -> None:
    text = "a:\n  script: printf '%s\\n' {{#l}} {{.}} {{/l}} | tail -n 1\n"

    assert (await called(scripted, text, l=list(range(20_000)))).output == "19999\n"


async def test_another_interpreter_finds_its_arguments_as_json(scripted: ScriptedWorld) -> None:
    text = (
        "a:\n  parameters: [{name: x}]\n  script: |\n    #!/usr/bin/env python3\n    import json, os\n"
        '    print(json.load(open(os.environ["TOOLREEVE_ARGUMENTS"]))["x"])\n'
    )

    assert (await called(scripted, text, x="{{x}} $(id)")).output == "{{x}} $(id)\n"


async def test_a_script_for_sh_runs_as_one(scripted: ScriptedWorld) -> None:
    assert (await called(scripted, "a:\n  script: |\n    #!/bin/sh -e\n    echo {{x}}\n    false\n", x="y")).data == {
        "stdout": "y\n",
        "stderr": "",
        "exit_code": 1,
    }


async def test_the_environment_holds_what_is_declared(scripted: ScriptedWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDECLARED", "x")

    result = await called(scripted, "a:\n  script: env\n  sandbox: {environment_variables: {N: 3, ON: true, T: a b}}\n")

    lines = set(str(result.output).splitlines())
    assert {"N=3", "ON=true", "T=a b"} <= lines
    assert not any(line.startswith(("UNDECLARED", "TOOLREEVE", "__toolreeve")) for line in lines)


class RecordingProcesses:
    """Runs nothing; keeps the requests."""

    def __init__(self) -> None:
        self.requests: list[ProcessRequest] = []

    async def run(self, request: ProcessRequest, _: OnOutput | None = None) -> Ended:
        self.requests.append(request)
        return Ended(exit_code=0, stdout=b"", stderr=b"", truncated=False, sandbox="none", seconds=0.0)


async def test_nothing_is_carried_from_the_screen_of_a_call_to_a_run(scripted: ScriptedWorld) -> None:
    scripted.tools.write_text("a:\n  script: echo {{x}}\n")
    tool = bind_definition(read_definitions(scripted.tools)[0], lambda _: None)
    none, processes = NoServices(), RecordingProcesses()
    files = WorkspaceFiles(scripted.workspace)
    services = Services(files=files, audit=none, models=none, undo=none, processes=processes, now=lambda: 0.0)
    args = {"x": "screened"}
    context = Context(ToolCall(tool="a", args=args), services)

    assert tool.screen is not None
    tool.screen(args, context)
    args["x"] = "run"
    await tool.run(args, context)
    files.close()

    assert processes.requests[0].files[VALUES] == b"run\0"


class Crowd:
    """Approves when so many calls wait for it: all of them are screened before the first one runs."""

    def __init__(self, size: int) -> None:
        self._barrier = asyncio.Barrier(size)

    async def __call__(self, _: object) -> bool:
        await self._barrier.wait()
        return True


async def test_concurrent_calls_of_a_tool_are_independent(scripted: ScriptedWorld) -> None:
    async with scripted.with_tools("a:\n  script: echo {{x}}\n", approve=Crowd(6)) as reeve:
        results = await asyncio.gather(*(reeve.call("a", {"x": f"value {number}"}) for number in range(6)))

    assert [result.output for result in results] == [f"value {number}\n" for number in range(6)]


SECRET_SANDBOX = {"environment_variables": {"TOKEN": "${secret:PLAIN}"}}
SECRETIVE = """
a:
  script: echo "$TOKEN" >&2; echo "[$TOKEN]"; exit {{n}}
  sandbox: {environment_variables: {TOKEN: "x-${secret:PLAIN}"}}
"""


@pytest.mark.parametrize("exit_code", [0, 3])
async def test_a_secret_reaches_the_script_and_no_one_else(
    scripted: ScriptedWorld, monkeypatch: pytest.MonkeyPatch, exit_code: int
) -> None:
    monkeypatch.setenv("PLAIN", "opensesame99")

    result = await called(scripted, SECRETIVE, n=exit_code)

    assert (result.data or {})["stdout"] == "[x-[redacted]]\n"
    assert "opensesame99" not in json.dumps(result.to_dict())
    assert "opensesame99" not in result.to_text()
    assert b"opensesame99" not in scripted.database_bytes()


@pytest.mark.parametrize(
    "encode",
    [
        'printf %s "$TOKEN" | base64',
        'printf "user:%s" "$TOKEN" | base64 -w0',
        'printf %s "$TOKEN" | od -An -v -tx1 | tr -d " \\n"',
        'printf %s "$TOKEN" | od -An -v -tx1 | tr -d " \\n" | tr a-f A-F',
        'printf %s "$TOKEN" | sed \'s/ /%20/g; s/:/%3A/g; s/"/%22/g; s/é/%C3%A9/g\'',
        'printf %s "$TOKEN" | sed \'s/"/\\\\"/g\'',
        'printf %s "$TOKEN" | sed \'s/"/\\\\"/g; s/é/\\\\u00e9/g\'',
    ],
)
@pytest.mark.parametrize("exit_code", [0, 3])
async def test_an_encoded_secret_is_redacted_too(
    scripted: ScriptedWorld, monkeypatch: pytest.MonkeyPatch, encode: str, exit_code: int
) -> None:
    monkeypatch.setenv("PLAIN", 'open sesame: "é"')
    text = json.dumps({"a": {"script": f"{encode}; {encode} >&2; exit {exit_code}", "sandbox": SECRET_SANDBOX}})

    result = await called(scripted, text)

    printed = result.data or {}
    assert "[redacted]" in printed["stdout"]
    assert "[redacted]" in printed["stderr"]
    assert len(printed["stdout"].replace("[redacted]", "").strip()) <= 10  # its neighbours in base64


async def test_a_secret_is_not_in_what_a_timeout_leaves_behind(
    scripted: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN", "opensesame99")
    sandbox = '{timeout: 0.5, environment_variables: {TOKEN: "${secret:PLAIN}"}}'

    result = await called(scripted, f"a:\n  script: echo $TOKEN; sleep 60\n  sandbox: {sandbox}\n")

    assert (result.data or {})["stdout"] == "[redacted]\n"


async def test_a_secret_comes_from_a_file_that_only_its_user_can_read(
    scripted: ScriptedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(scripted.state / "config"))
    file = scripted.state / "config" / "toolreeve" / "secrets.toml"
    file.parent.mkdir(parents=True)
    file.write_text('PLAIN = "opensesame99"\n')
    file.chmod(0o600)
    text = 'a:\n  script: echo "${#TOKEN}"\n  sandbox: {environment_variables: {TOKEN: "${secret:PLAIN}"}}\n'

    assert (await called(scripted, text)).output == "12\n"


async def test_a_missing_secret_is_named(scripted: ScriptedWorld) -> None:
    result = await called(scripted, SECRETIVE, n=0)

    assert result.error is not None
    assert (result.error.code, result.error.message) == (
        ErrorCode.PERMISSION,
        "the tool needs the secret 'PLAIN', which is not set",
    )


async def test_temp_isolation_starts_in_a_fresh_directory_and_leaves_nothing(scripted: ScriptedWorld) -> None:
    text = "a:\n  script: 'ls -A; echo x > made; touch /tmp/made'\n  sandbox: {use_temp_isolation: true}\n"
    async with scripted.with_tools(text, approve=yes) as reeve:
        results = [await reeve.call("a") for _ in range(2)]

    assert [result.output for result in results] == ["", ""]
    assert list(scripted.workspace.iterdir()) == []


async def test_with_temp_isolation_only_the_allowed_paths_can_be_changed(scripted: ScriptedWorld) -> None:
    (scripted.workspace / "in").mkdir()
    (scripted.workspace / "out").mkdir()
    root = scripted.workspace
    text = (
        f"a:\n  script: 'touch {root}/in/x; touch {root}/out/x'\n"
        "  sandbox: {use_temp_isolation: true, allowed_paths: [in]}\n"
    )

    result = await called(scripted, text)

    assert not result.success
    assert [path.name for path in root.rglob("x")] == ["x"]
    assert (root / "in" / "x").exists()


async def test_the_working_directory_lies_in_the_workspace_or_is_refused(scripted: ScriptedWorld) -> None:
    (scripted.workspace / "deep").mkdir()

    inside = await called(scripted, "a: {script: pwd, sandbox: {working_directory: deep}}\n")
    outside = await called(scripted, "a: {script: pwd, sandbox: {working_directory: ../..}}\n")

    assert inside.output == f"{scripted.workspace}/deep\n"
    assert outside.error is not None
    assert outside.error.code is ErrorCode.PATH_FORBIDDEN


async def test_only_the_allowed_commands_can_be_started(scripted: ScriptedWorld) -> None:
    text = "a:\n  script: 'cat /etc/hostname >/dev/null && ls; id'\n  sandbox: {allowed_commands: [cat]}\n"

    result = await called(scripted, text)

    assert result.error is not None
    assert "Permission denied" in result.to_text() or "not found" in result.to_text()


async def test_a_timeout_ends_it_and_keeps_what_it_printed(scripted: ScriptedWorld) -> None:
    result = await called(scripted, "a: {script: 'echo begun; sleep 60', sandbox: {timeout: 0.5}}\n")

    assert result.error is not None
    assert result.error.code is ErrorCode.TIMEOUT
    assert (result.data or {})["stdout"] == "begun\n"


async def test_a_limit_is_named(scripted: ScriptedWorld) -> None:
    text = "a:\n  script: 'head -c 3000000 /dev/zero > big'\n  sandbox: {max_file_size_mb: 1}\n"

    result = await called(scripted, text)

    assert result.error is not None
    assert result.error.code is ErrorCode.LIMIT
    assert "stopped: limit of 1 MB per file reached (max_file_size_mb)" in result.error.message


async def test_there_is_no_network_unless_it_is_asked_for(scripted: ScriptedWorld) -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        script = f"exec 3<>/dev/tcp/127.0.0.1/{port}"
        results = [
            await called(scripted, f"a: {{script: '{script}', sandbox: {{network: {network}}}}}\n")
            for network in ("none", "host")
        ]

    assert [result.success for result in results] == [False, True]


class Person:
    def __init__(self, answer: bool) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def __call__(self, request: Any) -> bool:
        self.asked.append(request.verdict.reason)
        return self.answer


CONFIRMED = (
    "a:\n  script: touch done\n  danger: safe\n  sandbox: {requires_confirmation: true, confirmation_message: Sure?}\n"
)


@pytest.mark.parametrize("answer", [True, False])
async def test_a_tool_that_wants_it_is_confirmed_by_a_person_whatever_its_danger(
    scripted: ScriptedWorld, answer: bool
) -> None:
    person = Person(answer)
    async with scripted.with_tools(CONFIRMED, approve=person) as reeve:
        result = await reeve.call("a")

    assert person.asked == ["Sure?"]
    assert (result.success, (scripted.workspace / "done").exists()) == (answer, answer)


async def test_without_anybody_to_ask_it_does_not_run(scripted: ScriptedWorld) -> None:
    async with scripted.with_tools(CONFIRMED) as reeve:
        result = await reeve.call("a")

    assert result.error is not None
    assert result.error.code is ErrorCode.PERMISSION


async def test_what_the_template_refuses_is_refused_before_anybody_is_asked(scripted: ScriptedWorld) -> None:
    person = Person(answer=True)
    async with scripted.with_tools("a: {script: 'cat {{x}}'}\n", approve=person) as reeve:
        result = await reeve.call("a", x="-n")

    assert person.asked == []
    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMS


async def test_the_prompt_shows_the_command_with_its_values(scripted: ScriptedWorld) -> None:
    shown: list[str] = []

    async def look(request: Any) -> bool:
        shown.extend(str(effect) for effect in request.effects)
        return True

    async with scripted.with_tools("a: {script: 'echo {{x}}', sandbox: {network: host}}\n", approve=look) as reeve:
        await reeve.call("a", x="a b")

    assert shown == ["exec:echo 'a b'", "net:*"]


async def test_output_is_reported_as_it_arrives(scripted: ScriptedWorld) -> None:
    progress = ""
    reeve = scripted.with_tools("a: {script: 'echo first-words; echo last-words'}\n", approve=yes)
    async with reeve, reeve.bus.subscribe() as events:
        await reeve.call("a")
        async for event in events:
            progress += str(event.data)
            if event.data.get("status") == "completed":
                break

    assert "first-words" in progress
    assert "last-words" in progress


async def test_a_failure_that_may_pass_is_tried_again(scripted: ScriptedWorld) -> None:
    text = (
        "a:\n  script: 'echo x >> tries; [ \"$(wc -l < tries)\" -ge 3 ]'\n"
        "  retry: {attempts: 5, initial_delay: 0.001}\n"
    )

    result = await called(scripted, text)

    assert (result.success, result.meta.attempts) == (True, 3)


async def test_a_failure_that_is_mapped_as_lasting_is_not_tried_again(scripted: ScriptedWorld) -> None:
    text = "a:\n  script: exit 4\n  retry: {attempts: 5, initial_delay: 0.001}\n  error_mapping: {'4': -32603}\n"

    result = await called(scripted, text)

    assert (result.success, result.meta.attempts) == (False, 1)


async def test_a_cached_answer_is_marked_as_such(scripted: ScriptedWorld) -> None:
    text = "a:\n  script: 'echo {{x}}; date +%N'\n  caching: {ttl: 60, key_template: '{{x}}'}\n"
    async with scripted.with_tools(text, approve=yes) as reeve:
        results = [await reeve.call("a", x=value) for value in ("y", "y", "z")]

    assert [result.meta.cached for result in results] == [False, True, False]
    assert results[0].output == results[1].output != results[2].output


async def test_repeated_failures_open_the_circuit_breaker(scripted: ScriptedWorld) -> None:
    text = "a:\n  script: exit 1\n  circuit_breaker: {failure_threshold: 2, recovery_timeout: 60}\n"
    async with scripted.with_tools(text, approve=yes) as reeve:
        codes = [(await reeve.call("a")).error for _ in range(3)]

    assert [error and error.code for error in codes] == [
        ErrorCode.TOOL_EXEC,
        ErrorCode.TOOL_EXEC,
        ErrorCode.CIRCUIT_OPEN,
    ]


def reeve_with(scripted: ScriptedWorld, text: str, profile: str) -> Toolreeve:
    scripted.tools.write_text(text)
    return scripted.reeve(settings=scripted.settings(error_profile=profile), approve=yes)


MAPPED = """
a:
  script: echo "no $1" >&2; exit {{n}}
  parameters: [{name: n, type: integer}, {name: path, default: x}]
  error_mapping:
    "1": {code: -32002, message: Resource not found, detail: "File not found: {{path}}"}
    "2": {code: -32602, retryable: true}
    "3": -32001
"""


async def test_exit_codes_are_reported_as_their_author_defines_them(scripted: ScriptedWorld) -> None:
    async with reeve_with(scripted, MAPPED, "acp-basic") as reeve:
        one, two, three, four = [await reeve.call("a", n=n, path="it's") for n in (1, 2, 3, 4)]

    assert one.error is not None
    assert (one.error.code, one.error.message, one.error.detail, one.error.retryable) == (
        ErrorCode.PATH_NOT_FOUND,
        "Resource not found",
        "File not found: it's",
        False,
    )
    assert one.meta.to_dict()["toolreeve_diagnostics"] == {
        "code": -32002,
        "message": "Resource not found",
        "retryable": False,
        "exit_code": 1,
        "stderr": "no \n",
        "detail": "File not found: it's",
    }
    assert "Diagnostics:\n  code: -32002" in one.to_text()
    assert two.error is not None
    assert (two.error.code, two.error.retryable) == (ErrorCode.INVALID_PARAMS, True)
    assert three.error is not None
    assert three.error.code is ErrorCode.PERMISSION
    assert four.error is not None
    assert (four.error.code, four.error.detail) == (ErrorCode.TOOL_EXEC, "the script exited with 4: no")
    assert (four.meta.diagnostics or {})["code"] == -32603
    assert (four.data or {})["exit_code"] == 4


async def test_the_extended_profile_reports_the_structure_itself(scripted: ScriptedWorld) -> None:
    async with reeve_with(scripted, MAPPED, "extended-json") as reeve:
        result = await reeve.call("a", n=1)

    assert result.error is not None
    assert result.error.detail["code"] == -32002
    assert result.error.detail["exit_code"] == 1
    assert "Diagnostics:" not in result.to_text()
